"""What `make synth` does after make, with the outputs below a folder of its own: <platform file> <folder>."""

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from app import synthesize
from genai_finops.spec import load_platform

gc.disable()  # as app.py does
file, root = Path(sys.argv[1]), Path(sys.argv[2])
synthesize(load_platform(file), file, root)
gc.freeze()
