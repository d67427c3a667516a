package hack

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// The limits of a package that can be read: fields of a struct, methods of a receiver,
// lines of a package. Files of tests and generated files do not count. Types of packages that
// mirror documents (apis, pkg/rest) may have any number of fields.
const (
	mostFields  = 20
	mostMethods = 60
	mostLines   = 3000
	mostOfAll   = 55667 // lines of all packages; lower it when lines go
)

type sizes struct {
	fields, methods, lines map[string]int
	mutexes                []string // in the components of the store, and those that are not watched
	arrows                 []string // imports that a component of the store must not have
}

func newSizes() sizes {
	return sizes{fields: map[string]int{}, methods: map[string]int{}, lines: map[string]int{}}
}

// read adds a file of a package. Its text is nil where the file is to be read.
func (s *sizes) read(t *testing.T, pkg, name string, text any) {
	t.Helper()
	files := token.NewFileSet()
	f := expect.Get(parser.ParseFile(files, name, text, parser.ParseComments))(t)
	if ast.IsGenerated(f) {
		return
	}
	s.arrows = append(s.arrows, arrows(pkg, f.Imports)...)
	s.lines[pkg] += files.File(f.Pos()).LineCount()
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				s.methods[pkg+"."+receiver(n.Recv.List[0].Type)]++
			}
		case *ast.TypeSpec:
			if x, ok := n.Type.(*ast.StructType); ok {
				s.fields[pkg+"."+n.Name.Name] = fields(x)
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && strings.HasSuffix(n.Sel.Name, "Mutex") && (strings.HasPrefix(pkg, inStore) || x.Name == "sync" && mayNotBeUnwatched(pkg)) {
				s.mutexes = append(s.mutexes, files.Position(n.Pos()).String())
			}
		}
		return true
	})
}

// layers are the packages of the store, lowest first, and components those that keep its
// state. A package may import lower ones; a component only state.
var (
	layers     = []string{"state", "cache", "pending", "preemption", "history", "model", "admission", "holds", "plans", "lifecycle", "cycle"}
	components = layers[:5]
)

const inStore = "pkg/store/internal/"

// arrows returns the imports of a package of the store that point up or sideways.
func arrows(pkg string, imports []*ast.ImportSpec) (out []string) {
	own, ok := strings.CutPrefix(pkg, inStore)
	if !ok {
		return nil
	}
	for _, i := range imports {
		path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/paddock-scheduler/paddock/")
		if !ours {
			continue
		}
		other, inside := strings.CutPrefix(path, inStore)
		below := slices.Index(layers, other) < slices.Index(layers, own)
		if slices.Contains(components, own) {
			below = other == "state"
		}
		if path == "pkg/store" || inside && !below {
			out = append(out, pkg+" imports "+path)
		}
	}
	return out
}

// mayNotBeUnwatched tells whether the locks of a package are those of pkg/internal/locks.
func mayNotBeUnwatched(pkg string) bool {
	return strings.HasPrefix(pkg, "pkg/") && pkg != "pkg/internal/locks" && pkg != "pkg/plugins/plugintest"
}

func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// fields returns the number of fields of a struct. An embedded type is one.
func fields(x *ast.StructType) (n int) {
	for _, f := range x.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

func (s *sizes) over() []string {
	var found []string
	add := func(kind string, of map[string]int, most int, but ...string) {
		for name, n := range of {
			if n > most && !slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(name, b) }) {
				found = append(found, fmt.Sprintf("%s has %d %s, and %d is the limit: cut it into parts", name, n, kind, most))
			}
		}
	}
	add("fields", s.fields, mostFields, "apis/", "pkg/rest")
	add("methods", s.methods, mostMethods)
	add("lines", s.lines, mostLines)
	all := 0
	for _, n := range s.lines {
		all += n
	}
	add("lines", map[string]int{"the tree": all}, mostOfAll)
	slices.Sort(found)
	return found
}

// TestSizesOfTheCode: no struct, receiver or package is over its limit. Packages below the
// store have no mutex and import lower ones only.
func TestSizesOfTheCode(t *testing.T) {
	s := newSizes()
	for _, name := range goFiles(t, false, "apis", "cmd", "internal", "pkg") {
		s.read(t, filepath.ToSlash(strings.TrimPrefix(filepath.Dir(name), "../")), name, nil)
	}
	for _, wrong := range s.over() {
		t.Error(wrong)
	}
	for _, arrow := range s.arrows {
		t.Errorf("%s: a package of the store imports lower ones only (layers), and a component none but state", arrow)
	}
	for _, at := range s.mutexes {
		t.Errorf("%s: use a lock of pkg/internal/locks; the packages below the store have none at all", at)
	}
}

// TestSizesAreFound plants a struct with a field too many, a receiver with a method too many, a
// package and a tree with a line too many, mutexes, and imports that point up and sideways.
func TestSizesAreFound(t *testing.T) {
	s := newSizes()
	s.read(t, "pkg/store/internal/a", "a.go", "package a\n\nimport \"sync\"\n\ntype big struct {\n\tmu sync.Mutex\n\t"+
		strings.Repeat("n, ", mostFields-1)+"n int\n}\n\nfunc (b *big) do() {}\n")
	const repository = "github.com/paddock-scheduler/paddock/"
	s.read(t, "pkg/store/internal/pending", "b.go", "package pending\n\nimport (\n\t_ \""+repository+"pkg/store/internal/cache\"\n\t_ \""+repository+"pkg/store\"\n)\n")
	s.read(t, "pkg/store/internal/holds", "c.go", "package holds\n\nimport (\n\t_ \""+repository+"pkg/store/internal/plans\"\n\t_ \""+repository+"pkg/store/internal/model\"\n)\n")
	s.read(t, "pkg/d", "d.go", "package d\n\nimport \"sync\"\n\nvar mu sync.RWMutex\n")
	s.read(t, "pkg/e", "e.go", "package e\n\ntype x int\n\n"+strings.Repeat("func (*x) _() {}\n", mostMethods+1))
	s.read(t, "pkg/f", "f.go", "package f\n"+strings.Repeat("\n", mostLines))
	expect.Same(t, "what is over a limit", []string{
		fmt.Sprintf("pkg/e.x has %d methods, and %d is the limit: cut it into parts", mostMethods+1, mostMethods),
		fmt.Sprintf("pkg/f has %d lines, and %d is the limit: cut it into parts", mostLines+1, mostLines),
		fmt.Sprintf("pkg/store/internal/a.big has %d fields, and %d is the limit: cut it into parts", mostFields+1, mostFields),
	}, s.over())
	tree := newSizes()
	for n := mostOfAll + 1; n > 0; n -= mostLines {
		tree.lines[fmt.Sprint("pkg/", n)] = min(n, mostLines)
	}
	expect.Same(t, "what is over the limit of the tree", []string{
		fmt.Sprintf("the tree has %d lines, and %d is the limit: cut it into parts", mostOfAll+1, mostOfAll),
	}, tree.over())
	expect.That(t, len(s.arrows) == 3 && len(s.mutexes) == 2, "%q and %q", s.mutexes, s.arrows)
	expect.Same(t, "methods", 1, s.methods["pkg/store/internal/a.big"])
}
