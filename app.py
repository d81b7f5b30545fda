"""The CDK application: one platform file in, templates and manifests out.

`make synth` runs it directly and prints a summary; the CDK CLI runs it through cdk.json and gets the same templates.
The file is named by the environment variable PLATFORM.
"""

import gc
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from genai_finops.spec import Platform, PlatformError, load_platform, warnings

if TYPE_CHECKING:
    from stacks.unchanged import Made

ROOT = Path(__file__).parent


def main() -> int:
    file = Path(os.environ.get("PLATFORM", "platform.yaml"))
    try:
        platform = load_platform(file)
    except PlatformError as error:
        print(error, file=sys.stderr)
        return 1
    # jsii runs on the Node of the virtual environment, whatever else is installed.
    os.environ.setdefault("JSII_NODE", str(Path(sys.prefix) / "bin" / "node"))
    if "CDK_OUTDIR" in os.environ:
        synthesize_for_cli(platform)
    else:
        synthesize(platform, file)
    return 0


def synthesize_for_cli(platform: Platform) -> None:
    """The CDK CLI says where the assembly goes and prints what it thinks of it."""
    from stacks.application import build

    build(platform).app.synth()


def synthesize(platform: Platform, file: Path, root: Path = ROOT) -> None:
    """Writes the assembly and the manifests below `root`, both or neither, and prints the summary.

    Nothing is written when what is there was made from the same file by the same code.
    """
    from genai_finops.planner.fixed_cost import budget_check
    from genai_finops.summary import Synthesis, print_summary
    from stacks import unchanged

    folders = Path("cdk.out"), Path("dist", "manifests")
    outputs = [root / folder for folder in folders]
    inputs = unchanged.fingerprint(file, ROOT)
    earlier = unchanged.earlier(inputs, outputs)
    made = earlier or make(platform, inputs, outputs)
    note = ", unchanged" if earlier else ""
    today = datetime.now(UTC).date()
    synthesis = Synthesis(
        stacks=made.stacks,
        charts=made.charts,
        outputs={
            "CloudFormation templates": f"{folders[0]}{note}",
            "Kubernetes manifests": f"{folders[1]}{note}",
        },
        platform_file=str(file),
    )
    print_summary(platform, synthesis, [*warnings(platform, today), *budget_check(platform, today)], today=today)


def make(platform: Platform, inputs: str, outputs: list[Path]) -> "Made":
    from k8s_charts import write_yaml
    from stacks import unchanged
    from stacks.application import build, resource_counts
    from stacks.outputs import replaced, reuse_assets

    with replaced(*outputs) as (assembly, manifests):
        reuse_assets(outputs[0], assembly)
        application = build(platform, outdir=assembly)
        application.app.synth()
        write_yaml(application.manifests, manifests)
        charts = {chart: len(objects) for chart, objects in application.manifests.items()}
        made = unchanged.Made(resource_counts(assembly), charts)
        unchanged.record(made, inputs, [assembly, manifests])
    return made


if __name__ == "__main__":
    # Nearly every object the CDK makes lives to the end: looking for garbage among them takes a fifth of the run.
    gc.disable()
    code = main()
    gc.freeze()
    sys.exit(code)
