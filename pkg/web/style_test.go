package web

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// pairs are colours that meet, and how much they have to differ: 4.5 for text, 3
// for drawings (WCAG 2.2, 1.4.3 and 1.4.11).
var pairs = []struct {
	front, back string
	least       float64
}{
	{"text", "back", 4.5}, {"text", "raised", 4.5}, {"quiet", "back", 4.5}, {"quiet", "raised", 4.5}, {"link", "back", 4.5}, {"link", "raised", 4.5},
	{"headtext", "head", 4.5}, {"warntext", "warnback", 4.5}, {"alert", "alertback", 4.5}, {"alert", "back", 4.5}, {"fine", "back", 4.5},
	{"fence", "back", 4.5}, {"back", "link", 4.5},
	{"entitled", "room", 3}, {"wanted", "back", 3}, {"wanted", "room", 3}, {"line", "room", 3}, {"line", "entitled", 3}, {"line", "above", 3},
	{"occupied", "room", 3}, {"above", "back", 1.8}, {"entitled", "above", 1.8},
}

var definition = regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`)

// colours are those of the light and of the dark scheme.
func colours(style string) (light, dark map[string]string) {
	light, dark = map[string]string{}, map[string]string{}
	before, after, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	for _, m := range definition.FindAllStringSubmatch(before, -1) {
		light[m[1]] = m[2]
		dark[m[1]] = m[2]
	}
	for _, m := range definition.FindAllStringSubmatch(after, -1) {
		dark[m[1]] = m[2]
	}
	return light, dark
}

// luminance is the relative luminance of a colour, 0 to 1.
func luminance(colour string) float64 {
	var parts [3]float64
	for i := range parts {
		n, err := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
		if err != nil {
			return math.NaN()
		}
		if parts[i] = float64(n) / 255; parts[i] <= 0.04045 {
			parts[i] /= 12.92
		} else {
			parts[i] = math.Pow((parts[i]+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*parts[0] + 0.7152*parts[1] + 0.0722*parts[2]
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// faint lists the pairs that differ too little.
func faint(style string) []string {
	var out []string
	light, dark := colours(style)
	for scheme, of := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, p := range pairs {
			if of[p.front] == "" || of[p.back] == "" {
				out = append(out, fmt.Sprintf("%s: %s or %s is not defined", scheme, p.front, p.back))
			} else if c := contrast(of[p.front], of[p.back]); c < p.least {
				out = append(out, fmt.Sprintf("%s: %s on %s has a contrast of %.2f, want %.1f", scheme, p.front, p.back, c, p.least))
			}
		}
	}
	return out
}

func TestContrast(t *testing.T) {
	for _, problem := range faint(string(style)) {
		t.Error(problem)
	}
	c := contrast("000000", "ffffff")
	expect.That(t, math.Abs(c-21) <= 0.01, "black on white has a contrast of %.2f", c)
}

func TestFaintColoursAreNoticed(t *testing.T) {
	for _, broken := range []string{
		strings.Replace(string(style), "--quiet: #525d6b", "--quiet: #9aa4b0", 1),
		strings.Replace(string(style), "--link: #8ec1ff", "--link: #1d4f91", 1),
		strings.ReplaceAll(string(style), "--fence:", "--fences:"),
	} {
		expect.That(t, len(faint(broken)) > 0, "not found")
	}
}
