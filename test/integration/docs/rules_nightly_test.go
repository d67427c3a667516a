//go:build nightly

package docs

const onceOnly = "each benchmark once: many rounds take hours"

// inFull are the rules of the nightly run for commands that take minutes: they come
// before the others. Its own parts are the commands make conformance, make compat, make
// lockorder and make unit-race, and what make nightly says.
var inFull = []rule{
	{
		match: `go test -run '\^\$' -bench .*`, why: onceOnly,
		environment: "GOFLAGS='-buildvcs=false -benchtime=1x -timeout=40m' ", says: "\nok ", root: true, long: true,
	},
	{match: `go (build|vet) .*`, why: "the repository is elsewhere", root: true, long: true},
	{match: `go test -c .*`, why: "the repository is elsewhere", root: true, long: true},
	{match: `go test ./test/integration .*`, why: "the repository is elsewhere", says: "\nok ", root: true, long: true},
	{match: `go run ./test/perf/pairs .*`, why: "one pair: ten take half an hour", instead: "$0 -pairs 1", says: "ratio", root: true, long: true},
	{match: `make bench CASES=Readers`, why: "one pair: ten take half an hour", instead: "$0 PAIRS=1", says: "ratio", root: true, long: true},
	{match: `go run ./test/conformance -(short|planted)`, why: "the repository is elsewhere", root: true, long: true},
	{match: `make soak`, why: "goes on until somebody ends it", instead: "timeout --foreground --signal=INT 5m $0 && exit 1; exit 0", says: "steps", root: true, long: true},
}
