"""Which messages the platform's file asks for beside alerts."""

import os
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lambdas.adapters.settings import SettingsError


class ReportSettings(BaseModel):
    """By variable of the environment.

    Attributes:
        daily_digest: a message a day.
        first_of_month: the same, once a month.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    daily_digest: bool = Field(default=False, alias="DAILY_DIGEST")
    first_of_month: bool = Field(default=False, alias="FIRST_OF_MONTH")

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ReportSettings":
        """From variables, such as `os.environ`.

        Raises:
            SettingsError: naming those that are wrong.
        """
        try:
            return cls.model_validate(dict(environment))
        except ValidationError as error:
            found = ", ".join(f"{problem['loc'][0]} is {problem['input']!r}" for problem in error.errors())
            raise SettingsError(f"{found}: use true or false") from None


@cache
def report_settings() -> ReportSettings:
    """Of this environment."""
    return ReportSettings.of(os.environ)
