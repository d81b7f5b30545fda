// Validates Kubernetes custom resources with the @kubernetes-models packages, all in one process.
// In: a JSON array of manifests on stdin.
// Out: for each {kind, error}: error is null when it is valid, and kind is null where no package knows it.
import { text } from "node:stream/consumers";

const PACKAGES = {
  "karpenter.sh": "karpenter",
  "karpenter.k8s.aws": "karpenter",
  "keda.sh": "keda",
  "monitoring.coreos.com": "prometheus-operator",
  "gateway.networking.k8s.io": "gateway-api",
};

async function modelOf({ apiVersion, kind }) {
  const [group, version] = apiVersion.split("/");
  if (!PACKAGES[group]) return null;
  return (await import(`@kubernetes-models/${PACKAGES[group]}/${group}/${version}/${kind}`))[kind];
}

async function check(manifest) {
  const Model = await modelOf(manifest);
  if (!Model) return { kind: null, error: null };
  try {
    new Model(manifest).validate();
    return { kind: manifest.kind, error: null };
  } catch (failure) {
    return { kind: manifest.kind, error: failure.message };
  }
}

const manifests = JSON.parse(await text(process.stdin));
process.stdout.write(JSON.stringify(await Promise.all(manifests.map(check))));
