package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Arguments are the arguments of one plugin.
type Arguments struct {
	// Plugin is its name in a KubeSchedulerConfiguration.
	Plugin string
	// About is the comment of the type.
	About string
	// Fields are in the order of the type.
	Fields []Field
}

// Field is one argument.
type Field struct {
	// Name is the key, Type its kind in words.
	Name, Type string
	// Default and Bounds are the sentences of the comment that begin with these words;
	// Bounds is empty without such a sentence.
	Default, Bounds string
	// Meaning is the rest of the comment.
	Meaning string
}

// kinds are the Go types of arguments in words.
var kinds = map[string]string{
	"string":          "text",
	"int32":           "whole number",
	"bool":            "true or false",
	"metav1.Duration": "duration",
}

// ReadArguments reads the types with a name that ends in Args from a Go file. It is an
// error if a field has no comment, or one without a default.
func ReadArguments(path string) ([]Arguments, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	words := wordTypes(file)
	var out []Arguments
	for _, t := range typesOf(file) {
		plugin, isArgs := strings.CutSuffix(t.spec.Name.Name, "Args")
		fields, isStruct := t.spec.Type.(*ast.StructType)
		if !isArgs || !isStruct {
			continue
		}
		a := Arguments{Plugin: plugin, About: prose(t.doc)}
		for _, f := range fields.Fields.List {
			if len(f.Names) == 0 {
				continue // kind and version
			}
			field, err := readField(f, words)
			if err != nil {
				return nil, fmt.Errorf("%s: %s.%s: %w", path, t.spec.Name.Name, f.Names[0].Name, err)
			}
			a.Fields = append(a.Fields, field)
		}
		out = append(out, a)
	}
	return out, nil
}

// documented is a type with its comment.
type documented struct {
	spec *ast.TypeSpec
	doc  *ast.CommentGroup
}

// typesOf returns the types of a file, each declared alone.
func typesOf(file *ast.File) []documented {
	var out []documented
	for _, decl := range file.Decls {
		if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
			out = append(out, documented{types.Specs[0].(*ast.TypeSpec), types.Doc})
		}
	}
	return out
}

// wordTypes returns the types of the file that are text with few values.
func wordTypes(file *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, t := range typesOf(file) {
		if base, ok := t.spec.Type.(*ast.Ident); ok && base.Name == "string" {
			out[t.spec.Name.Name] = true
		}
	}
	return out
}

func readField(f *ast.Field, words map[string]bool) (Field, error) {
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return Field{}, err
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	out := Field{Name: name, Type: kindOf(f.Type, words)}
	text := prose(f.Doc)
	if text == "" {
		return out, fmt.Errorf("has no comment")
	}
	var meaning []string
	for _, sentence := range sentences(text) {
		what, rest, _ := strings.Cut(sentence, ": ")
		switch what {
		case "Default":
			out.Default = strings.TrimSuffix(rest, ".")
		case "Bounds":
			out.Bounds = strings.TrimSuffix(rest, ".")
		default:
			meaning = append(meaning, sentence)
		}
	}
	out.Meaning = about(strings.Join(meaning, " "), f.Names[0].Name, name)
	if out.Type == "duration" {
		out.Meaning = strings.Replace(out.Meaning, ", as a duration", "", 1)
	}
	switch {
	case out.Default == "":
		return out, fmt.Errorf("its comment has no sentence that begins with %q", "Default: ")
	case out.Meaning == "":
		return out, fmt.Errorf("its comment does not say what it means")
	}
	return out, nil
}

// kindOf returns in words the values that a field may hold.
func kindOf(t ast.Expr, words map[string]bool) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return kindOf(t.X, words)
	case *ast.ArrayType:
		return strings.Replace("list of "+kindOf(t.Elt, words), "word", "words", 1)
	case *ast.Ident:
		if words[t.Name] {
			return "word"
		}
		return kinds[t.Name]
	case *ast.SelectorExpr:
		return kinds[fmt.Sprintf("%s.%s", t.X, t.Sel)]
	}
	return ""
}

// prose is a comment without its markers, in one line.
func prose(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(marker.ReplaceAllString(doc.Text(), "")), " ")
}

var (
	marker = regexp.MustCompile(`(?m)^\+.*$`)
	stop   = regexp.MustCompile(`\. ([A-Z])`)
)

// sentences splits a text after each full stop that is followed by a capital.
func sentences(text string) []string {
	return strings.Split(stop.ReplaceAllString(text, ".\n$1"), "\n")
}

// about removes the name of the Go field from the front of its comment, where it is the
// subject of a sentence, and replaces it by the key elsewhere.
func about(text, field, key string) string {
	for _, subject := range []string{field + " is ", field + " are ", field + " "} {
		if rest, ok := strings.CutPrefix(text, subject); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return strings.ReplaceAll(text, field, key)
}
