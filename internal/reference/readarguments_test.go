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
	Plugin string  // its name in a KubeSchedulerConfiguration
	About  string  // the comment of the type
	Fields []Field // in the order of the type
}

// Field is one argument.
type Field struct {
	Name, Type string // the key, and its kind in words
	// Default and Bounds are the sentences of the comment that begin with these words;
	// Bounds is empty without such a sentence. Meaning is the rest of the comment.
	Default, Bounds, Meaning string
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
	words := map[string]bool{} // the types of the file that are text with few values
	types := typesOf(file)
	for _, t := range types {
		base, ok := t.Specs[0].(*ast.TypeSpec).Type.(*ast.Ident)
		words[nameOf(t)] = ok && base.Name == "string"
	}
	var out []Arguments
	for _, t := range types {
		plugin, isArgs := strings.CutSuffix(nameOf(t), "Args")
		fields, isStruct := t.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
		if !isArgs || !isStruct {
			continue
		}
		a := Arguments{Plugin: plugin, About: prose(t.Doc)}
		for _, f := range fields.Fields.List {
			if len(f.Names) == 0 {
				continue // kind and version
			}
			field, err := readField(f, words)
			if err != nil {
				return nil, fmt.Errorf("%s: %s.%s: %w", path, nameOf(t), f.Names[0].Name, err)
			}
			a.Fields = append(a.Fields, field)
		}
		out = append(out, a)
	}
	return out, nil
}

// typesOf returns the types of a file, each declared alone.
func typesOf(file *ast.File) (out []*ast.GenDecl) {
	for _, decl := range file.Decls {
		if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
			out = append(out, types)
		}
	}
	return out
}

func nameOf(t *ast.GenDecl) string { return t.Specs[0].(*ast.TypeSpec).Name.Name }

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
