"""AWS identities for pods: an EKS Pod Identity association instead of an OIDC provider per cluster."""

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


def pod_identity_role(scope: Construct, id: str, *, role_name: str | None = None) -> iam.Role:
    """A role that EKS may hand to pods; it grants nothing yet."""
    principal = iam.ServicePrincipal("pods.eks.amazonaws.com").with_session_tags()
    return iam.Role(scope, id, assumed_by=principal, role_name=role_name)


def associate(
    scope: Construct, id: str, *, cluster_name: str, namespace: str, service_account: str, role: iam.Role
) -> eks.CfnPodIdentityAssociation:
    """Gives `role` to the pods of one service account."""
    return eks.CfnPodIdentityAssociation(
        scope,
        id,
        cluster_name=cluster_name,
        namespace=namespace,
        service_account=service_account,
        role_arn=role.role_arn,
    )
