"""A real Kubernetes control plane on the loopback: etcd, API server, controller manager and scheduler.

Without nodes: those come when the emulated cloud boots them.
"""

import json
import secrets
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml

from genai_finops.rehearsal.binaries import built
from genai_finops.rehearsal.certificates import Authority, Pair
from genai_finops.rehearsal.processes import Program, Programs, free_ports, listens
from genai_finops.spec import names

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

SERVICE_NETWORK: Final = "10.100.0.0/16"
"""As EKS gives it to a VPC in 10.0.0.0/16."""

START_SECONDS: Final = 60
"""Far more than the three that a start takes, for machines that do other things as well."""

FIELD_MANAGER: Final = "rehearsal"


class KubectlError(Exception):
    """What kubectl refused, in its own words."""


@dataclass(frozen=True, slots=True)
class User:
    """Someone the API server knows by a token.

    Attributes:
        groups: "system:masters" may do anything.
    """

    name: str
    groups: tuple[str, ...] = ()


ADMIN: Final = User("rehearsal-admin", ("system:masters",))
_CONTROLLER_MANAGER: Final = User("system:kube-controller-manager")
_SCHEDULER: Final = User("system:kube-scheduler")


class ControlPlane:
    """Started with `start`; ended with the programs it was started among.

    Args:
        folder: for certificates, data and kubeconfigs; new and empty.
        hpa_sync_seconds: how often the horizontal pod autoscaler looks.
        authenticator: address of a webhook that reads EKS tokens; None is without.
    """

    def __init__(
        self, programs: Programs, folder: Path, *, hpa_sync_seconds: float = 15, authenticator: str | None = None
    ) -> None:
        self._programs = programs
        self._folder = folder
        self._hpa_sync_seconds = hpa_sync_seconds
        self._authenticator = authenticator
        self._authority = Authority(folder / "pki")
        self._tokens = {user.name: secrets.token_hex(16) for user in (ADMIN, _CONTROLLER_MANAGER, _SCHEDULER)}
        self._etcd_port, self._peer_port, self._port, self._manager_port, self._scheduler_port = free_ports(5)

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def certificate_authority(self) -> Path:
        return self._authority.pair.certificate

    @property
    def kubeconfig(self) -> Path:
        """Of an administrator."""
        return self._folder / f"{ADMIN.name}.kubeconfig"

    def start(self, told: Callable[[str], None] = lambda line: None) -> None:
        """All of it, ready to be asked.

        Raises:
            BuildError: when a program cannot be built.
            ProcessError: when one does not start.
        """
        self._binaries = built(PROGRAMS, told)
        for user in (ADMIN, _CONTROLLER_MANAGER, _SCHEDULER):
            self.write_kubeconfig(user.name, self._tokens[user.name])
        self._start_etcd()
        self._start_api_server()
        self._start_controllers()

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """A file with which `name` is let in by `token`."""
        file = self._folder / f"{name.replace(':', '-')}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "rehearsal",
                    "cluster": {"server": self.address, "certificate-authority": str(self.certificate_authority)},
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "rehearsal", "context": {"cluster": "rehearsal", "user": name}}],
            "current-context": "rehearsal",
        }
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    def kubectl(self, *arguments: str, objects: Iterable[Mapping[str, Any]] | None = None) -> str:
        """What kubectl prints, as administrator; `objects` go to its standard input.

        Raises:
            KubectlError: with what it says instead.
        """
        command = [str(self._binaries["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        text = None if objects is None else "\n---\n".join(json.dumps(found) for found in objects)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> str:
        """Server-side, with unknown fields refused.

        Raises:
            KubectlError: when the API server refuses one; all reasons.
        """
        options = ["--server-side", "--validate=strict", f"--field-manager={FIELD_MANAGER}", "--force-conflicts"]
        return self.kubectl("apply", *options, "-f", "-", objects=objects)

    def define(self, files: Sequence[Path]) -> None:
        """CustomResourceDefinitions, ready to be used."""
        self.kubectl("apply", "--server-side", *(argument for file in files for argument in ("-f", str(file))))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={START_SECONDS}s")

    def _start_etcd(self) -> Program:
        peer = f"http://127.0.0.1:{self._peer_port}"
        command: list[str | Path] = [
            self._binaries["etcd"],
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{self._etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self._etcd_port}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # what is lost with the machine was a rehearsal
            "--log-level=warn",
        ]
        program = self._programs.start("etcd", command)
        self._programs.wait_for(program, lambda: listens(self._etcd_port), START_SECONDS)
        return program

    def _start_api_server(self) -> Program:
        server = self._authority.server("kube-apiserver", ("kubernetes", "kubernetes.default.svc", "10.100.0.1"))
        front = self._authority.client("front-proxy-client")
        accounts = self._authority.key_pair("service-accounts")
        command: list[str | Path] = [
            self._binaries["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",  # as on EKS
            "--enable-admission-plugins=NodeRestriction",
            f"--token-auth-file={self._token_file()}",
            f"--client-ca-file={self.certificate_authority}",
            *_tls(server),
            f"--service-account-key-file={accounts.certificate}",
            f"--service-account-signing-key-file={accounts.key}",
            "--service-account-issuer=https://rehearsal.invalid",
            # The extension API server of KEDA trusts who comes through this door.
            f"--requestheader-client-ca-file={self.certificate_authority}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={front.certificate}",
            f"--proxy-client-key-file={front.key}",
            *self._webhook(),
        ]
        self._accounts = accounts
        program = self._programs.start("kube-apiserver", command)
        self._programs.wait_for(program, self.is_ready, START_SECONDS)
        return program

    def _start_controllers(self) -> None:
        manager = self._programs.start(
            "kube-controller-manager",
            [
                self._binaries["kube-controller-manager"],
                f"--kubeconfig={self._kubeconfig_of(_CONTROLLER_MANAGER)}",
                f"--service-account-private-key-file={self._accounts.key}",
                f"--root-ca-file={self.certificate_authority}",
                "--use-service-account-credentials",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._manager_port}",
                "--leader-elect=false",
                f"--horizontal-pod-autoscaler-sync-period={self._hpa_sync_seconds}s",
                # Nobody routes or lends addresses here.
                "--controllers=*,-nodeipam,-route,-service-lb-controller",
            ],
        )
        scheduler = self._programs.start(
            "kube-scheduler",
            [
                self._binaries["kube-scheduler"],
                f"--config={self._scheduler_file()}",
                f"--authentication-kubeconfig={self._kubeconfig_of(_SCHEDULER)}",
                f"--authorization-kubeconfig={self._kubeconfig_of(_SCHEDULER)}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._scheduler_port}",
            ],
        )
        for program, port in ((manager, self._manager_port), (scheduler, self._scheduler_port)):
            self._programs.wait_for(program, lambda port=port: listens(port), START_SECONDS)  # type: ignore[misc]

    def is_ready(self) -> bool:
        """Whether the API server says so itself."""
        pool = urllib3.PoolManager(ca_certs=str(self.certificate_authority), retries=False, timeout=2)
        headers = {"Authorization": f"Bearer {self._tokens[ADMIN.name]}"}
        try:
            return pool.request("GET", f"{self.address}/readyz", headers=headers).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _kubeconfig_of(self, user: User) -> Path:
        return self._folder / f"{user.name.replace(':', '-')}.kubeconfig"

    def _token_file(self) -> Path:
        file = self._folder / "tokens.csv"
        file.touch(mode=0o600)
        lines = []
        for user in (ADMIN, _CONTROLLER_MANAGER, _SCHEDULER):
            groups = f',"{",".join(user.groups)}"' if user.groups else ""
            lines.append(f"{self._tokens[user.name]},{user.name},{user.name}{groups}\n")
        file.write_text("".join(lines), encoding="utf-8")
        return file

    def _scheduler_file(self) -> Path:
        """The default scheduler, and one by the name of Neuron's, whose extension only orders devices on a node."""
        file = self._folder / "scheduler.yaml"
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self._kubeconfig_of(_SCHEDULER))},
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": name} for name in ("default-scheduler", names.NEURON_SCHEDULER)],
        }
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    def _webhook(self) -> list[str]:
        if self._authenticator is None:
            return []
        file = self._folder / "authenticator.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "authenticator", "cluster": {"server": self._authenticator}}],
            "users": [{"name": "api-server"}],
            "contexts": [{"name": "webhook", "context": {"cluster": "authenticator", "user": "api-server"}}],
            "current-context": "webhook",
        }
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return [f"--authentication-token-webhook-config-file={file}", "--authentication-token-webhook-version=v1"]


def _tls(pair: Pair) -> list[str]:
    return [f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}"]
