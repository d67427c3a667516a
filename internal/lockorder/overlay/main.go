// Overlay writes copies of the files of packages in which the locks watch in which
// order they are taken, and a file for go's flag -overlay that puts them in place of
// the originals.
//
//	overlay OUT DIR...
//
// writes OUT/overlay.json for all packages in and below the directories.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const lockorder = "github.com/paddock-scheduler/paddock/internal/lockorder"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: overlay OUT DIR...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string, dirs []string) error {
	o := overlay{out: out, replace: map[string]string{}}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, o.file); err != nil {
			return err
		}
	}
	if len(o.replace) == 0 {
		return errors.New("there are no locks")
	}
	document, err := json.MarshalIndent(map[string]any{"Replace": o.replace}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "overlay.json"), document, 0o600)
}

// overlay is what takes the place of which file.
type overlay struct {
	out     string
	replace map[string]string
}

// file writes the copy of a file that has locks.
func (o *overlay) file(path string, _ fs.DirEntry, err error) error {
	if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
		return err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	watching, err := Rewrite(source)
	if err != nil || watching == nil {
		return err
	}
	original, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	copied, err := filepath.Abs(filepath.Join(o.out, strings.ReplaceAll(path, string(filepath.Separator), "_")))
	if err != nil {
		return err
	}
	o.replace[original] = copied
	return os.WriteFile(copied, watching, 0o600)
}

// Rewrite returns a file whose fields and variables of type sync.Mutex and
// sync.RWMutex watch; nil where there are none.
func Rewrite(source []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	r := rewriter{at: map[token.Pos]string{}}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				r.declaration(spec)
			}
		}
	}
	if len(r.at) == 0 {
		return nil, nil
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
		fmt.Fprintf(&out, "\ntype %s struct{}\n", name)
	}
	text := strings.Replace(out.String(), "\nimport (", "\nimport (\n\t"+strconv.Quote(lockorder), 1)
	if !strings.Contains(strings.ReplaceAll(text, "lockorder.", ""), "sync.") {
		text = strings.Replace(text, "\t\"sync\"\n", "", 1)
	}
	return format.Source([]byte(text))
}

// rewriter collects what takes the place of what.
type rewriter struct {
	at    map[token.Pos]string
	names []string
}

func (r *rewriter) declaration(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					r.lock(field.Type, spec.Name.Name+"_"+name.Name)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			r.lock(spec.Type, name.Name)
		}
	}
}

// lock notes that a type is to watch, if it is that of a lock.
func (r *rewriter) lock(of ast.Expr, name string) {
	s, ok := of.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if pkg, ok := s.X.(*ast.Ident); !ok || pkg.Name != "sync" || s.Sel.Name != "Mutex" && s.Sel.Name != "RWMutex" {
		return
	}
	r.names = append(r.names, "lockOf_"+name)
	r.at[s.Pos()] = "lockorder." + s.Sel.Name + "[lockOf_" + name + "]"
}
