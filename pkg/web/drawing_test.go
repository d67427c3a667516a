package web

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func TestDraw(t *testing.T) {
	for _, c := range []struct {
		name string
		from scale
		want bar
	}{
		{"nothing there", scale{name: "vcore"}, bar{
			Type: "vcore", Unit: "cores", Guarantee: -1, Limit: -1, Used: "0", Says: "vcore: 0 cores allocated",
		}},
		{
			"over the guarantee, with waiting pods",
			scale{name: "vcore", used: 6000, guaranteed: 4000, promised: true, limit: 10000, limited: true, waiting: 2000},
			bar{
				Type: "vcore", Unit: "cores", Entitled: piece{0, 400}, Above: piece{400, 200}, Occupied: piece{600, 0}, Waiting: piece{600, 200},
				Guarantee: 400, Limit: 1000, Used: "6", Guaranteed: "4", Max: "10", Wanted: "2",
				Says: "vcore: 6 cores allocated, 4 cores guaranteed, at most 10 cores, 2 cores waiting",
			},
		},
		// There is no room to draw what waits.
		{"over the max", scale{name: "memory", used: 4 << 30, limit: 2 << 30, limited: true, waiting: 1 << 30}, bar{
			Type: "memory", Above: piece{0, 1000}, Occupied: piece{1000, 0}, Waiting: piece{1000, 0},
			Guarantee: -1, Limit: 500, Used: "4 GiB", Max: "2 GiB", Wanted: "1 GiB",
			Says: "memory: 4 GiB allocated, at most 2 GiB, 1 GiB waiting",
		}},
		{"no max: what the nodes hold", scale{name: "gpu", used: 1, room: 4, promised: true}, bar{
			Type: "gpu", Above: piece{0, 250}, Occupied: piece{250, 0}, Waiting: piece{250, 0}, Limit: -1,
			Used: "1", Guaranteed: "0", Says: "gpu: 1 allocated, 0 guaranteed",
		}},
		{"a node", scale{name: "pods", used: 3, occupied: 2, limit: 10, limited: true}, bar{
			Type: "pods", Above: piece{0, 300}, Occupied: piece{300, 200}, Waiting: piece{500, 0},
			Guarantee: -1, Limit: 1000, Used: "3", Foreign: "2", Max: "10",
			Says: "pods: 3 allocated, 2 used by other schedulers' pods, at most 10",
		}},
		{"a trace is seen", scale{name: "x", used: 1, room: 1 << 40}, bar{
			Type: "x", Above: piece{0, 1}, Occupied: piece{1, 0}, Waiting: piece{1, 0}, Guarantee: -1, Limit: -1, Used: "1", Says: "x: 1 allocated",
		}},
	} {
		expect.Same(t, c.name, c.want, c.from.draw())
	}
}

// TestStateOfAHold: it goes on after "held for a pod, which" and after "it".
func TestStateOfAHold(t *testing.T) {
	pods := func(uids ...types.UID) []types.UID { return uids }
	for want, h := range map[string]reservations.Hold{
		"waits for 2 pods to leave, 1 pod chosen to go for it": {
			Chosen: pods("a"), Awaited: pods("a", "b"),
		},
		"waits for 1 pod that is leaving anyway": {Awaited: pods("b")},
		"waits: pods are preempted in 10s":       {Note: "pods are preempted in 10s"},
		"has room there and is about to start":   {Chosen: pods("a")},
	} {
		expect.Same(t, "state", want, stateOf(&h))
	}
}

// drawn checks a bar: its pieces follow each other inside it, and its lines are in it.
func drawn(b bar) error {
	end := 0
	for i, p := range []piece{b.Entitled, b.Above, b.Occupied, b.Waiting} {
		if p.From != end || p.Width < 0 {
			return fmt.Errorf("piece %d is from %d, %d wide, after %d", i, p.From, p.Width, end)
		}
		end += p.Width
	}
	if end > barWidth || b.Guarantee > barWidth || b.Limit > barWidth || b.Guarantee < -1 || b.Limit < -1 {
		return fmt.Errorf("pieces end at %d, the guarantee at %d, the limit at %d", end, b.Guarantee, b.Limit)
	}
	if b.Guarantee >= 0 && b.Above.Width > 0 && b.Entitled.Width != b.Guarantee {
		return fmt.Errorf("something is used beyond the guarantee at %d, and %d within", b.Guarantee, b.Entitled.Width)
	}
	return nil
}

func scales() *rapid.Generator[scale] {
	amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64())
	return rapid.Custom(func(t *rapid.T) scale {
		draw := func(name string) resources.Amount { return resources.Amount(amount.Draw(t, name)) }
		s := scale{
			name: "vcore", used: max(draw("used"), 0), occupied: max(draw("occupied"), 0), waiting: max(draw("waiting"), 0), room: draw("room"),
			promised: rapid.Bool().Draw(t, "promised"), limited: rapid.Bool().Draw(t, "limited"),
		}
		if s.promised {
			s.guaranteed = max(draw("guaranteed"), 0)
		}
		if s.limited {
			s.limit = draw("limit")
		}
		return s
	})
}

func TestBarsStayInTheirPlace(t *testing.T) {
	spoilt := func(spoil func(*bar)) func(scale) error {
		return func(s scale) error {
			b := s.draw()
			spoil(&b)
			return drawn(b)
		}
	}
	expect.Law(t, scales(), func(s scale) error { return drawn(s.draw()) },
		spoilt(func(b *bar) { b.Above.From = 0 }),            // pieces overlap
		spoilt(func(b *bar) { b.Guarantee-- }),               // the guarantee is off
		spoilt(func(b *bar) { b.Waiting.Width += barWidth }), // a piece is too wide
		spoilt(func(b *bar) { b.Limit = barWidth + 1 }),      // the limit is outside
		// A piece is left of 0.
		spoilt(func(b *bar) { b.Above.Width, b.Occupied.From = -1, b.Above.From-1 }),
		spoilt(func(b *bar) { b.Occupied.From++ })) // a gap before the next
}

func TestVisible(t *testing.T) {
	for given, want := range map[string]string{
		"":                    "",
		"plain_name-1.2/x@y":  "plain_name-1.2/x@y",
		"two\nlines":          "two\nlines",
		"größer 队列 🙂":         "größer 队列 🙂",
		"tab\there":           `tab\u0009here`,
		"null\x00":            `null\u0000`,
		"abc\u202egnp.exe":    `abc\u202egnp.exe`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"\u2066isolated":      `\u2066isolated`,
		"bad \xff byte":       `bad \ufffd byte`,
		"<script>&\"'</s>":    "<script>&\"'</s>",
		"escape \x1b[31m red": `escape \u001b[31m red`,
	} {
		expect.Same(t, given+" is shown as", want, visible(given))
	}
	long := strings.Repeat("ä", 3000)
	expect.Same(t, "a long text", strings.Repeat("ä", longest)+"…", visible(long))
	expect.Same(t, "another one", strings.Repeat("a", longest)+"…", visible(strings.Repeat("a", 3000)))
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		name   string
		amount resources.Amount
		want   string
	}{
		{"vcore", 0, "0 cores"}, {"vcore", 1, "0.001 cores"}, {"vcore", 250, "0.25 cores"},
		{"vcore", 1000, "1 core"}, {"vcore", 1500, "1.5 cores"}, {"vcore", 12340, "12.3 cores"},
		{"vcore", 400000, "400 cores"}, {"vcore", 1234567890, "1,234,567 cores"},
		{"vcore", -2500, "-2.5 cores"},
		{"memory", 0, "0"}, {"memory", 512, "512 B"}, {"memory", 1 << 10, "1 KiB"},
		{"memory", 1000, "0.977 KiB"}, {"memory", 3 << 29, "1.5 GiB"},
		{"memory", 1023 << 20, "0.999 GiB"}, {"memory", 100 << 40, "100 TiB"},
		{"memory", -1 << 30, "-1 GiB"}, {"memory", math.MaxInt64, "8 EiB"},
		{"hugepages-2Mi", 4 << 20, "4 MiB"}, {"ephemeral-storage", 200 << 30, "200 GiB"},
		{"pods", 110000, "110,000"}, {"nvidia.com/gpu", 8, "8"},
		{"nvidia.com/gpu", math.MinInt64, "-9,223,372,036,854,775,808"},
	} {
		expect.Same(t, fmt.Sprintf("%d of %s", c.amount, c.name), c.want, quantity(c.name, c.amount))
	}
}

func TestAmounts(t *testing.T) {
	v := resources.VectorOf(
		resources.Entry{Name: "pods", Amount: 1}, resources.Entry{Name: "memory", Amount: 2 << 30},
		resources.Entry{Name: "gpu", Amount: 1}, resources.Entry{Name: "vcore", Amount: 1500},
	)
	expect.Same(t, "amounts", "1.5 cores, 2 GiB memory, 1 gpu, 1 pod", amounts(v))
	expect.Same(t, "nothing", "nothing", amounts(resources.Vector{}))
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Minute: "0 s", 0: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s", 59 * time.Minute: "59 min",
		time.Hour: "1 h 0 min", 25*time.Hour + time.Minute: "1 d 1 h", 100 * 24 * time.Hour: "100 d",
	} {
		expect.Same(t, fmt.Sprint(ago)+" ago", want, age(now, now.Add(-ago)))
	}
	expect.Same(t, "no time", "", age(now, time.Time{}))
	expect.Same(t, "no time", (moment{}), at(time.Time{}))
	want := moment{UTC: "2026-01-02 03:04:05 UTC", Machine: "2026-01-02T03:04:05Z"}
	expect.Same(t, "a time elsewhere", want, at(now.In(time.FixedZone("x", 7200))))
}

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
