package hack

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

type call struct{ from, to string }

// compiled is what "go list" says of a package.
type compiled struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func (p *compiled) calls(t *testing.T, exports map[string]string) map[call]bool {
	t.Helper()
	set, files := token.NewFileSet(), []*ast.File{}
	for _, name := range p.GoFiles {
		files = append(files, expect.Get(parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0))(t))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	own := expect.Get(config.Check(p.ImportPath, set, files, info))(t)
	out := map[call]bool{}
	file := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	for id, used := range info.Uses {
		if f, ok := used.(*types.Func); ok && f.Pkg() == own && file(id.Pos()) != file(f.Pos()) {
			out[call{file(id.Pos()), file(f.Pos())}] = true
		}
	}
	return out
}

// upwards returns the calls that run back up in an order of the files in which few do.
func upwards(calls map[call]bool, files []string) (out []call) {
	up := func(order []string) (out []call) {
		for c := range calls {
			if slices.Index(order, c.from) > slices.Index(order, c.to) {
				out = append(out, c)
			}
		}
		return out
	}
	out = up(files)
	for better := true; better; {
		better = false
		for i := range files {
			for j := range files {
				moved := slices.Insert(slices.Delete(slices.Clone(files), i, i+1), j, files[i])
				if fewer := up(moved); len(fewer) < len(out) {
					out, files, better = fewer, moved, true
				}
			}
		}
	}
	return out
}

// TestFilesCallDownwards: the files of a package have an order, from callers to called. Of all
// pairs of files that call each other, under a tenth run against it.
func TestFilesCallDownwards(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./pkg/...")
	list.Dir = ".."
	lines := json.NewDecoder(strings.NewReader(string(expect.Get(list.Output())(t))))
	exports, packages := map[string]string{}, []compiled{}
	for {
		var p compiled
		err := lines.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		expect.Holds(t, err)
		if exports[p.ImportPath] = p.Export; strings.HasPrefix(p.ImportPath, "github.com/paddock-scheduler/paddock/") {
			packages = append(packages, p)
		}
	}
	all, back := 0, []string{}
	for i := range packages {
		calls := packages[i].calls(t, exports)
		all += len(calls)
		for _, c := range upwards(calls, packages[i].GoFiles) {
			back = append(back, packages[i].ImportPath+": "+c.from+" calls "+c.to)
		}
	}
	slices.Sort(back)
	expect.That(t, all >= 400 && len(back)*10 < all,
		"of %d pairs of files that call each other, 400 at least, %d run back up, and under a tenth may:\n%s",
		all, len(back), strings.Join(back, "\n"))
}

// TestCallsThatRunBackUpAreFound plants a circle of three files, and one below it.
func TestCallsThatRunBackUpAreFound(t *testing.T) {
	circle := map[call]bool{{"a", "b"}: true, {"b", "c"}: true, {"c", "a"}: true, {"a", "d"}: true}
	expect.Same(t, "one of a circle", 1, len(upwards(maps.Clone(circle), []string{"d", "c", "b", "a"})))
	delete(circle, call{"c", "a"})
	expect.Same(t, "none without it", 0, len(upwards(circle, []string{"d", "c", "b", "a"})))
}
