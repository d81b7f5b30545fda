"""`python -m genai_finops` is the command `genai-finops`."""

from genai_finops.cli import main

if __name__ == "__main__":
    main()
