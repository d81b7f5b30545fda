"""The forms that a text in the platform file may have: what a machine matches, and what a person is told.

Rust's regular expressions (pydantic's) and JSON Schema's both end `$` at the very end of the text.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Form:
    """A regular expression, what it allows in words (completes "It must be ..."), and an example."""

    pattern: str
    words: str
    example: str


DNS_LABEL: Final = Form(
    r"^[a-z]([a-z0-9-]*[a-z0-9])?$",
    "lower-case letters, digits and dashes, starting with a letter and not ending with a dash",
    "llama3-8b",
)
SERVED_NAME: Final = Form(
    r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
    "1 to 128 letters, digits, dots, dashes, slashes and underscores, starting with a letter or digit",
    "meta-llama/Meta-Llama-3-8B-Instruct",
)
ROLE_ARN: Final = Form(
    r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$",
    "the ARN of one IAM role",
    "arn:aws:iam::111122223333:role/Admin",
)
CERTIFICATE_ARN: Final = Form(
    r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+$",
    "the ARN of an ACM certificate",
    "arn:aws:acm:us-east-1:111122223333:certificate/11111111-2222-3333-4444-555555555555",
)
HOSTNAME: Final = Form(
    r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$",
    "a lower-case host name with a domain",
    "models.example.com",
)
SECRET_NAME: Final = Form(
    r"^[A-Za-z0-9/_+=.@-]{1,512}$",
    "the name of a Secrets Manager secret: letters, digits and / _ + = . @ -",
    "genai/hugging-face-token",
)
SNAPSHOT: Final = Form(r"^snap-[0-9a-f]{8}([0-9a-f]{9})?$", "the id of an EBS snapshot", "snap-0123456789abcdef0")
EMAIL: Final = Form(r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "one e-mail address", "finops@example.com")
SLACK_WORKSPACE: Final = Form(
    r"^[0-9A-Z]{1,255}$", "a Slack workspace id: upper-case letters and digits", "T0123456789"
)
SLACK_CHANNEL: Final = Form(r"^[A-Za-z0-9]{1,255}$", "a Slack channel id: letters and digits", "C0123456789")

FORMS: Final = {
    form.pattern: form
    for form in (
        DNS_LABEL,
        SERVED_NAME,
        ROLE_ARN,
        CERTIFICATE_ARN,
        HOSTNAME,
        SECRET_NAME,
        SNAPSHOT,
        EMAIL,
        SLACK_WORKSPACE,
        SLACK_CHANNEL,
    )
}
"""By pattern."""
