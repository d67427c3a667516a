package rings

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

const (
	maxLines     = 500
	maxTestLines = 800
)

// clockCalls are the functions of package time that read the clock or wait.
var clockCalls = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// CheckFile returns a sentence for each thing that is wrong with a Go file, which
// is named by its path below the root of the module, with slashes. Generated
// files are as long as they are.
func CheckFile(name string, content []byte) []string {
	file, fset, err := parse(name, content)
	if err != nil {
		return []string{err.Error()}
	}
	if ast.IsGenerated(file) {
		return nil
	}
	var found []string
	limit := maxLines
	if isTest(name) {
		limit = maxTestLines
	}
	if lines := bytes.Count(content, []byte("\n")); lines > limit {
		found = append(found, fmt.Sprintf("%s has %d lines, the limit is %d: split it by what it is about", name, lines, limit))
	}
	ring, ok := RingOf(Module + "/" + path.Dir(name))
	if ok && pure(ring) && !isTest(name) {
		found = append(found, checkPure(file, fset)...)
	}
	return found
}

func parse(name string, content []byte) (*ast.File, *token.FileSet, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	return file, fset, err
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// checkPure finds goroutines, channels and readings of the clock.
func checkPure(file *ast.File, fset *token.FileSet) []string {
	var found []string
	report := func(node ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s in rings 0 to 2", fset.Position(node.Pos()), what))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			report(node, "a goroutine")
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			report(node, "a channel")
		case *ast.SelectorExpr:
			if pkg, ok := node.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clockCalls, node.Sel.Name) {
				report(node, "time."+node.Sel.Name)
			}
		}
		return true
	})
	return found
}
