package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table writes rows in columns that are as wide as their longest cell.
type table struct {
	rows [][]string
	// right tells, by column, whether cells are flush right, as numbers are.
	right []bool
}

// newTable starts a table; a title that begins with ">" makes a column flush right.
func newTable(titles ...string) *table {
	t := &table{right: make([]bool, len(titles))}
	for i, title := range titles {
		titles[i], t.right[i] = strings.CutPrefix(title, ">")
	}
	t.rows = append(t.rows, titles)
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i := range row {
			row[i] = printable(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("   ")
			}
			if t.right[i] {
				line.WriteString(gap + cell)
			} else {
				line.WriteString(cell + gap)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
