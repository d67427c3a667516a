package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Program returns the path of the browser: that in CHROMIUM, or chromium in PATH.
func Program() (string, error) {
	if program := os.Getenv("CHROMIUM"); program != "" {
		return program, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("no Chromium is installed, which the tests of the web pages need: " +
		"apt-get install chromium, or give its program in the variable CHROMIUM")
}

// Browser is a running browser. It ends with its context or with [Browser.Close].
type Browser struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it
}

// Start starts a browser. The files of the browser are removed with it.
func Start(ctx context.Context) (*Browser, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.Flag("disable-quic", true),
		chromedp.IgnoreCertErrors) // the certificates of tests are self-signed
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with a sandbox
	}
	ctx, _ = chromedp.NewExecAllocator(ctx, options...)
	ctx, _ = chromedp.NewContext(ctx)
	return &Browser{ctx}, chromedp.Do(ctx)
}

// Close ends the browser.
func (b *Browser) Close() error { return chromedp.Cancel(b.ctx) }

// Look is the appearance of a page.
type Look struct {
	// Width and Height are those of the window, in CSS pixels.
	Width, Height int64
	// Dark requests the dark colours.
	Dark bool
}

// Tab is an open page.
type Tab struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it

	mu       sync.Mutex // guards the fields below
	problems []string
}

// Open opens a blank tab.
func (b *Browser) Open(look Look) (*Tab, error) {
	t := &Tab{}
	t.ctx, _ = chromedp.NewContext(b.ctx, chromedp.WithListener(t.happened))
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	return t, errors.Join(
		do(t, network.Enable, network.EnableParams{}),
		do(t, audits.Enable, cdp.Empty{}),
		do(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		do(t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: look.Width, Height: look.Height, DeviceScaleFactor: 1}))
}

func do[P any](t *Tab, command cdp.Command[P, cdp.Empty], params P) error {
	_, err := chromedp.Call(t.ctx, command, params)
	return err
}

// Go goes to a page and waits for it and all its resources.
func (t *Tab) Go(address string) error { return t.load(chromedp.Navigate(address)) }

// load triggers the load of another page, and waits for it.
func (t *Tab) load(act chromedp.Action[chromedp.Void]) error {
	if _, err := chromedp.RunResponse(t.ctx, act); err != nil {
		return err
	}
	// Events of the page arrive before the answers to later requests.
	_, err := Eval[string](t, "document.readyState")
	return err
}

// happened records an event.
func (t *Tab) happened(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	note := func(format string, args ...any) { t.problems = append(t.problems, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			note("console %s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if slices.Contains([]runtime.ConsoleAPICalledType{runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert}, e.Type) {
			for _, arg := range e.Args {
				note("console %s: %s %s", e.Type, arg.Value, arg.Description)
			}
		}
	case *runtime.EventExceptionThrown:
		note("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description)
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			note("%s answers %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled {
			note("not loaded: %s", e.ErrorText)
		}
	case *audits.EventIssueAdded:
		note("issue %s: %+v", e.Issue.Code, e.Issue.Details)
	}
}

// Problems returns the problems in the tab since the last call.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.problems
	t.problems = nil
	return out
}

// Eval evaluates JavaScript in the page, exempt from its content security policy.
func Eval[T any](t *Tab, expression string) (T, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[T](expression))
}

// Press presses a key of package kb.
func (t *Tab) Press(key string) error { return chromedp.Do(t.ctx, chromedp.KeyEvent(key)) }

// Picture takes a picture of the whole page, as PNG, at most so many pixels high.
func (t *Tab) Picture(highest float64) ([]byte, error) {
	metrics, err := chromedp.Call(t.ctx, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	all, size := true, metrics.CSSContentSize
	picture, err := chromedp.Call(t.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &all, Clip: &page.Viewport{Width: size.Width, Height: min(size.Height, highest), Scale: 1},
	})
	return picture.Data, err
}

// Close closes the tab.
func (t *Tab) Close() error { return chromedp.Cancel(t.ctx) }
