package docs

const (
	onceOnly  = "each benchmark once: many rounds take hours"
	elsewhere = "the repository is elsewhere"
	writes    = "it writes files of the repository: in a clone it has to find them up to date"
)

// inFull are the rules of the nightly run for commands that take minutes. At every change
// such a command is only looked up: its targets, packages and tests must exist.
var inFull = []rule{
	{
		match: `go test -run '\^\$' -bench .*`, why: onceOnly, less: true,
		environment: "GOFLAGS='-buildvcs=false -benchtime=1x -timeout=40m' ", says: "\nok ", root: true, long: true,
	},
	{match: `go (build|vet) .*`, why: elsewhere, root: true, long: true},
	{match: `go test ./test/integration .*`, why: elsewhere, says: "\nok ", root: true, long: true},
	{match: `make bench CASES=.*`, why: "one pair: ten take half an hour", less: true, instead: "$0 PAIRS=1", says: "ratio", root: true, long: true},
	{match: `go run ./test/conformance -(short|planted|suites .*)`, why: elsewhere, root: true, long: true},
	{ // not INT, which a process started in the background may ignore
		match: `make soak`, why: "goes on until it is ended: five minutes", less: true,
		instead: "timeout --signal=TERM 5m $0 && exit 1; exit 0", says: "steps", root: true, long: true,
	},
	{match: `make simulate.*`, why: elsewhere, says: "steps", root: true, long: true},
	{match: `make image.*`, why: elsewhere, says: "sha256:", root: true, long: true},
	{match: `make (generate|render)`, why: writes, clone: true, long: true},
}
