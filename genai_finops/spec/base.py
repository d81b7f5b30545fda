"""What every section of the platform file has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the platform file: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, use_attribute_docstrings=True)
