package docs

import (
	"regexp"
	"slices"
)

// rule says how commands are handled that are not simply run.
type rule struct {
	match string // the whole command, or its beginning where it ends in ".*"
	why   string // why the command is not simply run, in one sentence
	kind  kind   // set where the command is not run as it is written
	less  bool   // fewer rounds are run than the command says
	// instead is run in place of the command; $0 is the command.
	instead string
	// environment is put before the command; it ends in a space.
	environment string
	// meanwhile is run while the command runs, once its output contains says; then the
	// command is ended.
	meanwhile     string
	says          string // a required part of the output
	exit          int    // the expected exit code
	refused       string // the message before it ends with exit code 1
	before, after string // run around the command
	// elsewhere names the test that covers the command, "directory Test". A test of
	// exactly this name must exist; that it covers the command is not checked.
	elsewhere string
	// last is true for a command that removes what others need: it comes after them, and
	// before the long ones.
	last bool
	// root runs the command in the root of the repository, clone in the root of a new
	// copy, which it must not change; long gives it an hour, and makes it come last.
	root, clone, long bool
	// kubelet starts a kubelet for the node of cluster/front; its port is KUBELET in
	// before. Port 9080 of this machine is any free one.
	kubelet bool
	// node is true for commands on a node: directory /etc/kubernetes is one of the test,
	// with upstream's static pod and ours beside it.
	node bool
}

// removeKubectl removes what kubectl installed, because helm takes over only objects of
// its own. The same commands are on the page about YuniKorn.
const removeKubectl = `kubectl delete deployment,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy,resourcequota,role,rolebinding -n yunikorn -l app.kubernetes.io/name=paddock
kubectl delete role,rolebinding -n kube-system -l app.kubernetes.io/name=paddock
kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/name=paddock`

// removed is true if only the namespace of the installation is left.
const removed = `all=$(kubectl get deployment,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy,resourcequota,role,rolebinding,clusterrole,clusterrolebinding -A -o name)
left=$(grep paddock-scheduler <<< "$all" || true)
if [[ -n $left ]]; then echo "left: $left" >&2; exit 1; fi
`

// migrated makes the cluster as it is after a migration from YuniKorn: a chart has made
// its Service, and the overlay keeps that.
const migrated = `kubectl -n yunikorn delete service yunikorn-service --ignore-not-found
mkdir -p yunikorn-chart/templates
cp yunikorn-service.yaml yunikorn-chart/templates
printf 'apiVersion: v2\nname: yunikorn\nversion: 0.0.0\n' > yunikorn-chart/Chart.yaml
helm install yunikorn ./yunikorn-chart --namespace yunikorn
kubectl apply -k manifests/overlays/migrate-from-yunikorn
[[ $(kubectl -n yunikorn get service yunikorn-service -o jsonpath='{.spec.selector.app}') == yunikorn ]]`

// gang makes a pod of a gang, and a placeholder as YuniKorn makes them. Their scheduler
// does not exist, so that the queues on other pages stay the same.
const gang = "kubectl apply -f gang.yaml"

// noGang deletes both.
const noGang = "kubectl delete -f gang.yaml --ignore-not-found"

// finished checks that Service and pods are Paddock's own after the last step.
const finished = `[[ -z $(kubectl -n yunikorn get service yunikorn-service -o name --ignore-not-found) ]]
` + restore + `
[[ $(kubectl -n yunikorn get service yunikorn-service -o jsonpath='{.spec.selector.app\.kubernetes\.io/name}{.spec.selector.app}') == paddock ]]
[[ $(kubectl -n yunikorn get service yunikorn-service -o jsonpath='{.spec.ports[*].port}') == "9080 10259" ]]
[[ -z $(kubectl -n yunikorn get deployment paddock-scheduler -o jsonpath='{.spec.template.metadata.labels.app}') ]]`

// limited waits until the quotas of the page refuse a pod with a PriorityClass. A pod without one
// is accepted.
const limited = `try() { kubectl run tried -n team --image=none --dry-run=server --overrides='{"apiVersion": "v1", "spec": {'"$1"'}}' 2>&1; }
until said=$(try '"priorityClassName": "patient"' || true) && [[ $said == *"exceeded quota: tenant-priorities"* ]]; do sleep 0.2; done
try ""`

// readerMayRead waits until the API server confirms the rights of the user that reads
// REST: a refusal is remembered for ten seconds.
const readerMayRead = `until kubectl auth can-i get /paddock/ws/v1/partitions --as=system:serviceaccount:monitoring:reader; do sleep 0.2; done`

// readerElsewhere is why the reader gets its rights before a command.
const readerElsewhere = "what lets the reader read is on another page"

// letReaderRead grants that right, forbidReader revokes it.
const (
	letReaderRead = forbidReader + " --ignore-not-found\nkubectl create clusterrole paddock-reader --verb=get --non-resource-url='/paddock/*'\n" +
		"kubectl create clusterrolebinding paddock-reader --clusterrole=paddock-reader --serviceaccount=monitoring:reader\n" + readerMayRead
	forbidReader = "kubectl delete clusterrole,clusterrolebinding paddock-reader"
)

// browses reads pages through kubectl proxy, with their style sheet, as a browser does. It does not
// read REST, which other sites could read through the proxy. Without the proxy nothing is read.
const browses = `at=$(sed -nE 's|^Starting to serve on (127[0-9.:]+)$|http://\1|p' said)
for page in / /waiting /nodes /decisions /configuration /health; do curl -sf "$at$page" > page; grep -q '<title>' page; done
style=$(sed -nE 's|.*<link[^>]* href="([^"]*\.css[^"]*)".*|\1|p' page)
[[ -n $style && -n $(curl -sf "$at/$style") ]]
[[ $(curl -s -o page -w '%{http_code}' "$at/ws/v1/partitions") == 403 ]]
[[ $(curl -s -o page -w '%{http_code}' --cacert ca.crt https://127.0.0.1:9080/) == 401 ]]
rm page`

// restore installs what the pages describe.
const restore = "kubectl apply -k manifests/base"

// secondRevision changes the Deployment, so that it has a second revision.
const secondRevision = `revision() {
  kubectl -n yunikorn rollout history deployment paddock-scheduler | awk '$1+0 > n {n = $1+0} END {print n+0}'
}
until (($(revision) > 0)); do sleep 0.2; done
first=$(revision)
kubectl -n yunikorn rollout restart deployment paddock-scheduler
until (($(revision) > first)); do sleep 0.2; done`

// onNode makes the files of a node of the control plane, with upstream's scheduler.
const onNode = `rm -rf etc static-pod.yaml
mkdir -p /etc/kubernetes/manifests
echo upstream > /etc/kubernetes/manifests/kube-scheduler.yaml
cp manifests/overlays/replace-default/static-pod.yaml .
`

// taken is a node without upstream's scheduler.
const taken = onNode + "mv /etc/kubernetes/manifests/kube-scheduler.yaml /etc/kubernetes/kube-scheduler.upstream.yaml\n"

// replaced is a node with Paddock in its place.
const replaced = taken + "cp static-pod.yaml /etc/kubernetes/manifests/kube-scheduler.yaml\n"

const simulated = "the nodes are simulated: no process runs in a pod there"

// hasPods waits until the Deployment has pods; they need not be placed.
const hasPods = restore + `
until [[ -n $(kubectl -n yunikorn get pod -l app.kubernetes.io/name=paddock -o name) ]]; do sleep 0.2; done`

// hasAllPods waits until the Deployment has all its pods, and none of an earlier one is left.
const hasAllPods = restore + `
until replicas=$(kubectl -n yunikorn get deployment paddock-scheduler -o jsonpath='{.status.replicas}') && ((${replicas:-0} >= 2)) &&
  (($(kubectl -n yunikorn get pod -l app.kubernetes.io/name=paddock -o name | wc -l) == replicas)); do sleep 0.2; done`

// rolledOut reports the pods of the Deployment as ready, as kubelets would, until it has no others.
const rolledOut = hasPods + `
until [[ $(kubectl -n yunikorn rollout status deployment paddock-scheduler --watch=false) == *"successfully rolled out"* ]]; do
  for pod in $(kubectl -n yunikorn get pod -l app.kubernetes.io/name=paddock -o name); do
    kubectl -n yunikorn patch $pod --subresource=status --type=merge -p '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}' || true
  done
  sleep 0.2
done`

// unready deletes these pods; others replace them.
const unready = "kubectl -n yunikorn delete pod -l app.kubernetes.io/name=paddock --wait=false"

// onFront makes a pod of the Deployment run on a node with a kubelet of the test. The
// Deployment is made anew, because pods of one that another page changed may linger.
const onFront = "kubectl -n yunikorn delete deployment paddock-scheduler --ignore-not-found\n" +
	"kubectl -n yunikorn delete pod -l app.kubernetes.io/name=paddock --force\n" + hasPods + `
kubectl apply -f - <<< '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "front"}, "spec": {"unschedulable": true}}'
kubectl patch node front --subresource=status --type=merge -p '{"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET}}}}'
pod=$(kubectl -n yunikorn get pod -l app.kubernetes.io/name=paddock -o jsonpath='{.items[0].metadata.name}')
kubectl create --raw /api/v1/namespaces/yunikorn/pods/$pod/binding -f - <<< '{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "'$pod'"}, "target": {"kind": "Node", "name": "front"}}'
kubectl -n yunikorn patch pod $pod --subresource=status --type=merge -p '{"status": {"phase": "Running"}}'`

// offFront deletes that node and its pod, because no kubelet would.
const offFront = `kubectl -n yunikorn delete pod -l app.kubernetes.io/name=paddock --field-selector=spec.nodeName=front --force
kubectl delete node front`

// anew makes the namespace of the pages again.
const anew = restore + "\nkubectl create configmap yunikorn-configs -n yunikorn --from-file=queues.yaml=queues.yaml"

// theOthers are the kinds of the objects that the first command of removeKubectl leaves.
const theOthers = `kubectl delete role,rolebinding -n kube-system -l app.kubernetes.io/name=paddock
kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/name=paddock
`

// rules are tried in order; the first that matches counts.
var rules = []rule{
	// Names of commands.
	{
		match: `kubectl (paddock|proxy|delete -k|port-forward|describe pod|paddock explain pod)|kubectl-paddock config validate|helm (upgrade|uninstall)|bin/(scheduler|kubectl-paddock)`,
		kind:  kindName, why: "the name of a command",
	},
	{match: `go mod tidy`, kind: kindName, why: "one of the steps to another version"},
	{match: `flux suspend helmrelease`, kind: kindName, why: "the name of a command; there is no flux here"},
	{match: `(ctr --namespace k8s.io images import|kind load image-archive|crictl pull)`, kind: kindName, why: "the name of a command; the nodes are simulated and have no images"},
	{match: `kubeadm (upgrade|init phase control-plane scheduler)`, kind: kindName, why: "the name of a command to beware of"},
	{match: `kubectl debug node/...`, kind: kindName, why: "the name of a command"},
	{match: `kubectl-paddock __complete .*`, kind: kindName, why: "what a script for completion runs"},

	// The repository's own targets; rules_long_test.go has those that take minutes.
	{match: `make run`, kind: kindAnother, why: "goes on until it is ended", elsewhere: "test/integration TestMakeRun"},
	{match: `make browser`, kind: kindAnother, why: "is this test and nothing else", elsewhere: "test/browser TestPages"},
	{match: `go run ./test/conformance -write`, kind: kindAnother, why: "nothing runs it with -write, which takes half an hour; that what it finds gets into the page is tried", elsewhere: "test/conformance TestPageIsWritten"},
	{match: `make build`, why: elsewhere, root: true},
	{match: `make (test|unit-race|unit-release)`, kind: kindPart, why: "it is what runs this test, or runs with it"},
	{match: `make (nightly.*|conformance|lockorder|compat)`, kind: kindPart, why: "it is the nightly run, or one of its parts"},
	{match: `make push .*`, kind: kindAnother, why: "has no registry that takes it", elsewhere: "tools/release/image TestPush"},
	{match: `make samples`, kind: kindAnother, why: "is this test, and writes what it compares", elsewhere: "test/integration/docs TestCommands"},
	{
		match: `go test -run '\^\$' -bench (Cycle|Plan) .*`, why: "each benchmark once: many rounds take minutes", less: true,
		environment: "GOFLAGS='-buildvcs=false -benchtime=1x' ", says: "\nok ", root: true,
	},
	{match: `make bench`, why: "one pair of one case: all take hours", less: true, environment: "CASES=RollOut PAIRS=1 ", says: "ratio", root: true},

	// Installing, and removing things that others need.
	{
		match: `helm (install|upgrade --install) .*`, why: "helm takes over nothing that kubectl has installed",
		before: removeKubectl, after: "helm uninstall paddock -n yunikorn\n" + removed + restore,
	},
	{
		match: `helm uninstall paddock -n yunikorn`, why: "there has to be something to remove",
		before: removeKubectl + "\nhelm install paddock manifests/chart --namespace yunikorn --create-namespace", after: removed + restore,
	},
	{match: `kubectl apply -k (mine|groups)`, why: "other pages need what is shipped", after: restore},
	{
		match: `helm uninstall yunikorn --namespace yunikorn`, why: "the chart that is uninstalled has nothing of YuniKorn's but its Service",
		before: migrated, after: finished,
	},
	{
		match: `kubectl get pods -A -o jsonpath='.*/placeholder==.*xargs .*`, why: "there has to be a placeholder, and a member of its gang stays", before: gang,
		after: "[[ $(kubectl get pods -n spark -l yunikorn.apache.org/app-id=gang -o name) == pod/gang-driver ]]\n" + noGang,
	},
	{
		match: `kubectl get pods -A -o jsonpath='.*/placeholder==.*`, why: "there has to be a placeholder", before: gang,
		says: "spark/tg-gang-executors-0 Pending\n", after: noGang,
	},
	{match: `kubectl delete (role|clusterrole),.* -l app.kubernetes.io/name=paddock`, why: "other pages need it", after: restore},
	{match: `kubectl delete deployment,.* -l app.kubernetes.io/name=paddock`, why: "other pages need it", before: restore, after: theOthers + removed + restore},
	{
		match: `kubectl (apply|delete) -k manifests/admission/mutating-v1( .*)?`, why: "for Kubernetes 1.36: this API server has v1beta1, and does not know the kind",
		refused: `no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"`,
	},
	deletes("manifests/admission/mutating-v1beta1"), deletes("manifests/admission/only-queues"),
	deletes("manifests/admission/require-user"), deletes("manifests/admission/namespace-queue"), deletes("manifests/admission/bounded-pods"), deletes("manifests/admission"),
	applies("manifests/admission/only-queues"), applies("manifests/admission/require-user"), applies("manifests/admission/namespace-queue"),
	applies("manifests/admission/bounded-pods"),
	{match: `kubectl apply -n team -f quotas.yaml`, why: "other pages make pods there", after: limited + "\nkubectl delete -n team -f quotas.yaml"},
	{match: `kubectl delete -k manifests/base`, why: "other pages need it", last: true, before: restore, after: removed + anew},
	{
		match: `cp manifests/overlays/replace-default-daemonsets/scheduler.yaml .*`, why: "there is no kubelet here", node: true, before: onNode,
		after: "cmp manifests/overlays/replace-default-daemonsets/scheduler.yaml /etc/kubernetes/paddock-scheduler.yaml",
	},
	{match: `kubectl -n yunikorn scale deployment paddock-scheduler --replicas=0`, why: "other pages need its pods", after: restore},
	{match: `kubectl (-n yunikorn )?delete deployment paddock-scheduler.*`, why: "other pages need it", after: restore},
	{
		match: `kubectl -n yunikorn wait pod -l app.kubernetes.io/name=paddock .*`, why: "other pages need the pods: they are told to go as the command before it does",
		before: hasAllPods + "\nkubectl -n yunikorn delete deployment paddock-scheduler --wait=false",
		after:  "[[ -z $(kubectl -n yunikorn get pod -l app.kubernetes.io/name=paddock -o name) ]]\n" + restore,
	},
	{match: `kubectl -n yunikorn rollout undo deployment paddock-scheduler`, why: "there has to be something to undo", before: secondRevision},

	// The Service and the pods of an installation.
	{match: `kubectl -n yunikorn logs deployment/paddock-scheduler .*`, why: "there have to be pods; " + simulated + ", and their logs are empty", before: hasPods},
	{match: `kubectl -n yunikorn rollout status deployment paddock-scheduler .*`, why: simulated + ": they are said to be ready", before: rolledOut, says: "successfully rolled out", after: unready},
	{
		match: `kubectl -n yunikorn port-forward service/yunikorn-service \d+`, why: "goes on until it is ended; " + simulated + ", so a kubelet of the test leads to the scheduler", last: true,
		kubelet: true, before: onFront, says: "Forwarding from 127.0.0.1:", after: offFront,
		meanwhile: `curl -sf "$(sed -nE 's|^Forwarding from (127[0-9.:]+) .*|http://\1/ws/v1/partitions|p' said)" | grep -q '"name":"default"'`,
	},
	{
		match: `kubectl paddock queues --server https://.*`, why: readerElsewhere, says: "GUARANTEED", before: letReaderRead, after: forbidReader,
	},
	{
		match: `kubectl proxy --port=0 .*`, why: "goes on until it is ended; " + readerElsewhere, before: letReaderRead, after: forbidReader,
		says: "Starting to serve on 127.0.0.1:", meanwhile: browses,
	},
	{match: `curl --cacert ca.crt .*`, why: "the API server has to have heard of the commands before it", before: readerMayRead, says: "default"},
	{match: `bin/scheduler --version`, why: "the binary is in the repository", root: true},

	// The steps on nodes of the control plane.
	{
		match: `mv /etc/kubernetes/manifests/kube-scheduler.yaml .*`, why: "there is no kubelet here", node: true, before: onNode,
		after: "[[ -z $(ls /etc/kubernetes/manifests) && $(cat /etc/kubernetes/kube-scheduler.upstream.yaml) == upstream ]]",
	},
	{
		match: `cp static-pod.yaml .*`, why: "there is no kubelet here", node: true, before: taken,
		after: "cmp static-pod.yaml /etc/kubernetes/manifests/kube-scheduler.yaml",
	},
	{
		match: `cp scheduler.yaml .*`, why: "there is no kubelet here", node: true,
		before: onNode + "cp manifests/overlays/replace-default/scheduler.yaml .",
		after:  "grep -q \"path: /$(ls -d etc/kubernetes/paddock-scheduler.yaml),\" static-pod.yaml",
	},
	{
		match: `rm /etc/kubernetes/manifests/kube-scheduler.yaml`, why: "there is no kubelet here", node: true, before: replaced,
		after: "[[ -z $(ls /etc/kubernetes/manifests) && -e /etc/kubernetes/kube-scheduler.upstream.yaml ]]",
	},
	{
		match: `mv /etc/kubernetes/kube-scheduler.upstream.yaml .*`, why: "there is no kubelet here", node: true,
		before: replaced + "rm /etc/kubernetes/manifests/kube-scheduler.yaml",
		after:  "[[ $(cat /etc/kubernetes/manifests/kube-scheduler.yaml) == upstream && ! -e /etc/kubernetes/kube-scheduler.upstream.yaml ]]",
	},
	{match: `base64 -d \| gunzip`, why: "it reads what is packed", before: "gzip < queues.yaml | base64 -w0 > packed", environment: "< packed ", says: "partitions:\n", after: "rm packed"},

	// Commands that end with another code than 0, by design.
	{match: `kubectl paddock preview -f pod.yaml`, why: "the pod would make others leave", exit: 1},
	{match: `kubectl-paddock config diff deployed.yaml queues.yaml --usage usage.json`, why: "it finds something that needs attention", exit: 1},
}

// applies is the rule of a command that applies a policy that refuses pods.
func applies(dir string) rule {
	return rule{match: `kubectl apply -k ` + dir, why: "other pages make other pods", after: "kubectl delete -k " + dir}
}

// deletes is the rule of a command that deletes the objects of a directory of manifests.
func deletes(dir string) rule {
	return rule{
		match: `kubectl delete -k ` + dir + ` --ignore-not-found`, why: "there has to be something to delete, and nothing of it may be left",
		before: "kubectl apply -k " + dir, after: "[[ -z $(kubectl get -k " + dir + " --ignore-not-found -o name) ]]",
	}
}

// ruleOf finds the rule of a command. If only the nightly run has one, that is returned,
// and at every change the command is only looked up.
func ruleOf(text string) (rule, bool) {
	if nightly {
		return ruleAmong(slices.Concat(inFull, rules), text)
	}
	if r, found := ruleAmong(rules, text); found {
		return r, true
	}
	r, found := ruleAmong(inFull, text)
	if !found {
		return rule{}, false
	}
	return rule{match: r.match, why: r.why, kind: kindLater, less: r.less}, true
}

// expressions are the compiled expressions of the rules.
var expressions = map[string]*regexp.Regexp{}

// ruleAmong finds the first matching rule of a command.
func ruleAmong(rules []rule, text string) (rule, bool) {
	for _, r := range rules {
		if expressions[r.match] == nil {
			expressions[r.match] = regexp.MustCompile(`^(?s:` + r.match + `)$`)
		}
		if expressions[r.match].MatchString(text) {
			return r, true
		}
	}
	return rule{}, false
}
