"""AWS identities for pods: an EKS Pod Identity association instead of an OIDC provider per cluster."""

from collections.abc import Sequence

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


def pod_identity_role(scope: Construct, id: str, *, role_name: str | None = None) -> iam.Role:
    """A role that EKS may hand to pods; it grants nothing yet."""
    principal = iam.ServicePrincipal("pods.eks.amazonaws.com").with_session_tags()
    return iam.Role(scope, id, assumed_by=principal, role_name=role_name)


def associate(
    scope: Construct,
    id: str,
    *,
    cluster_name: str,
    namespace: str,
    service_account: str,
    role: iam.Role,
    policies: Sequence[iam.ManagedPolicy],
) -> eks.CfnPodIdentityAssociation:
    """Gives `role` to the pods of one service account.

    `policies` are those of the role: what waits for the association then starts, and stops, with its permissions.
    """
    association = eks.CfnPodIdentityAssociation(
        scope,
        id,
        cluster_name=cluster_name,
        namespace=namespace,
        service_account=service_account,
        role_arn=role.role_arn,
    )
    association.node.add_dependency(*policies)
    return association
