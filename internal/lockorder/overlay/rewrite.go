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

const lockorder = "github.com/paddock-scheduler/paddock/internal/lockorder"

// rewrite returns a file with recording fields and variables in place of sync.Mutex and
// sync.RWMutex, and their names within their package; nil without any. A lock in an
// unknown form is an error.
func rewrite(path string, source []byte) (watching []byte, locks []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	r := rewriter{at: map[token.Pos]string{}}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				r.declaration(spec)
			}
		}
	}
	if err := r.complete(set, file); err != nil || len(r.at) == 0 {
		return nil, nil, err
	}
	var out bytes.Buffer
	base, done := set.File(file.Pos()).Base(), 0
	for offset := range source {
		if text, ok := r.at[token.Pos(base+offset)]; ok {
			out.Write(source[done:offset])
			out.WriteString(text)
			done = offset + len("sync.") + len(text[len("lockorder."):strings.IndexByte(text, '[')])
		}
	}
	out.Write(source[done:])
	for _, name := range r.names {
		fmt.Fprintf(&out, "\ntype lockOf_%s struct{}\n", name)
		locks = append(locks, strings.ReplaceAll(name, "_", "."))
	}
	if !strings.Contains(out.String(), "\nimport (") {
		return nil, nil, fmt.Errorf("%s: there is no block of imports to add one to", path)
	}
	text := strings.Replace(out.String(), "\nimport (", "\nimport (\n\t"+strconv.Quote(lockorder), 1)
	if !strings.Contains(strings.ReplaceAll(text, "lockorder.", ""), "sync.") {
		text = strings.Replace(text, "\t\"sync\"\n", "", 1)
	}
	watching, err = format.Source([]byte(text))
	return watching, locks, err
}

// rewriter collects the replacements.
type rewriter struct {
	at    map[token.Pos]string
	names []string
}

func (r *rewriter) declaration(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				r.lock(field.Names, field.Type, spec.Name.Name+"_")
			}
		}
	case *ast.ValueSpec:
		r.lock(spec.Names, spec.Type, "")
	}
}

// lock marks a type to be replaced, if it is that of one lock.
func (r *rewriter) lock(names []*ast.Ident, of ast.Expr, prefix string) {
	if s, ok := of.(*ast.SelectorExpr); ok && isLock(s) && len(names) == 1 {
		name := prefix + names[0].Name
		r.names = append(r.names, name)
		r.at[s.Pos()] = "lockorder." + s.Sel.Name + "[lockOf_" + name + "]"
	}
}

func isLock(s *ast.SelectorExpr) bool {
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "sync" && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}

// complete returns an error for a lock that would not be replaced.
func (r *rewriter) complete(set *token.FileSet, file *ast.File) (err error) {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"sync"` && spec.Name != nil {
			return fmt.Errorf("%v: sync is imported under another name, by which locks are not found", set.Position(spec.Pos()))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isLock(s) && r.at[s.Pos()] == "" && err == nil {
			err = fmt.Errorf("%v: this lock would not watch: it has to be a field, with a name and a line of its own, of a struct type of the package, or such a variable of the package", set.Position(s.Pos()))
		}
		return true
	})
	return err
}
