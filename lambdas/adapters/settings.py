"""What the stack tells a function, checked when it starts and not when it is needed."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FilePath, StringConstraints, ValidationError

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]


class SettingsError(Exception):
    """Variables of the environment are missing or wrong; all of them are named."""


class Settings(BaseModel):
    """By variable of the environment.

    Attributes:
        facts_table: DynamoDB table of facts and claims.
        alerts_topic_arn: None when the platform names nobody to notify.
        cluster_name: of EKS.
        region: set by Lambda itself.
        platform_config: file in the bundle with what the functions need of platform.yaml; it must be there.
        model_namespace: of the models in Kubernetes.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    facts_table: Text = Field(alias="FACTS_TABLE")
    alerts_topic_arn: OptionalText = Field(default=None, alias="ALERTS_TOPIC_ARN", pattern=r"^arn:[\w-]+:sns:")
    cluster_name: Text = Field(alias="CLUSTER_NAME")
    region: Text = Field(alias="AWS_REGION")
    platform_config: FilePath = Field(alias="PLATFORM_CONFIG")
    model_namespace: Text = Field(alias="MODEL_NAMESPACE")

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Settings":
        """From variables, such as `os.environ`.

        Raises:
            SettingsError: naming every variable that is missing or wrong.
        """
        try:
            return cls.model_validate(dict(environment))
        except ValidationError as error:
            raise SettingsError(_explained(error)) from None


def _explained(error: ValidationError) -> str:
    lines = ["The function's environment is not what its stack must set:"]
    for problem in error.errors(include_url=False):
        name = problem["loc"][0]
        if problem["type"] == "missing":
            lines.append(f"  {name} is missing")
        else:
            lines.append(f"  {name} is {problem['input']!r}: {problem['msg']}")
    return "\n".join(lines)
