package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Import paths that matter to a rewritten file.
const (
	upstreamTests  = "k8s.io/kubernetes/test/integration/"
	ourTests       = "github.com/paddock-scheduler/paddock/test/conformance/upstream/"
	withOurs       = "github.com/paddock-scheduler/paddock/test/conformance/withours"
	schedulerPath  = "k8s.io/kubernetes/pkg/scheduler"
	optionsOfNew   = 5 // scheduler.New has so many arguments before its options
	withOursName   = "withours"
	frameworkTests = upstreamTests + "framework" // upstream's API server and etcd, used unchanged
)

// replaced are the options of upstream's scheduler and the functions that are called
// instead.
var replaced = map[string]string{
	"WithProfiles":                   "WithProfiles",
	"WithFrameworkOutOfTreeRegistry": "WithRegistry",
}

// rewrite returns the source of one file of an upstream suite so that each scheduler it
// makes has our plugins, and how many calls were changed. Imports of other suites lead to
// their rewritten copies. Everything else is unchanged.
//
// It is an error if the file calls scheduler.New in an unknown form.
func rewrite(name string, source []byte) ([]byte, int, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		return nil, 0, err
	}
	scheduler := redirect(file)
	r := rewriting{scheduler: scheduler}
	if scheduler != "" {
		ast.Inspect(file, r.visit)
	}
	if r.err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, r.err)
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, file); err != nil {
		return nil, 0, err
	}
	text := out.Bytes()
	if r.changed > 0 {
		text = addImport(text)
		// All uses may be gone, and an unused import does not compile.
		text = fmt.Appendf(text, "\nvar _ %s.Option\n", scheduler)
	}
	return text, r.changed, nil
}

// redirect leads imports of suites to their copies. It returns the name by which the file
// calls upstream's scheduler; empty if it does not import it.
func redirect(file *ast.File) (scheduler string) {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		switch rest, ok := strings.CutPrefix(path, upstreamTests); {
		case path == schedulerPath:
			scheduler = "scheduler"
			if spec.Name != nil {
				scheduler = spec.Name.Name
			}
		case ok && path != frameworkTests:
			spec.Path.Value = strconv.Quote(ourTests + rest)
		}
	}
	return scheduler
}

// rewriting is the state while a file is walked.
type rewriting struct {
	scheduler string // upstream's scheduler by its name in the file
	changed   int
	err       error
}

func (r *rewriting) visit(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	if x, ok := selector.X.(*ast.Ident); !ok || x.Name != r.scheduler {
		return true
	}
	if name, ok := replaced[selector.Sel.Name]; ok {
		call.Fun = &ast.SelectorExpr{X: ident(withOursName, call.Pos()), Sel: ident(name, call.Pos())}
		r.changed++
	}
	if selector.Sel.Name == "New" {
		r.wrap(call)
	}
	return true
}

// wrap passes the options of scheduler.New through ours.
func (r *rewriting) wrap(call *ast.CallExpr) {
	if len(call.Args) < optionsOfNew {
		r.err = fmt.Errorf("scheduler.New with %d arguments", len(call.Args))
		return
	}
	options := &ast.CallExpr{
		Fun:  &ast.SelectorExpr{X: ident(withOursName, call.Rparen), Sel: ident("Options", call.Rparen)},
		Args: append([]ast.Expr(nil), call.Args[optionsOfNew:]...), Ellipsis: call.Ellipsis,
	}
	call.Args = append(call.Args[:optionsOfNew:optionsOfNew], options)
	call.Ellipsis = call.Rparen
	r.changed++
}

func ident(name string, pos token.Pos) *ast.Ident { return &ast.Ident{Name: name, NamePos: pos} }

// addImport adds the import of withours after the package clause; several import
// declarations are allowed.
func addImport(text []byte) []byte {
	clause := bytes.Index(text, []byte("\nimport "))
	if clause < 0 {
		return text
	}
	line := fmt.Sprintf("\nimport %q\n", withOurs)
	return append(append(append([]byte(nil), text[:clause]...), line...), text[clause:]...)
}
