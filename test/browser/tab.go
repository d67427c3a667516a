package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Look is how a page is looked at.
type Look struct {
	// Width and Height are of the window, in CSS pixels.
	Width, Height int
	// Dark asks for the dark colours.
	Dark bool
}

// Tab is an open page.
type Tab struct {
	browser *Browser
	session string
	target  string

	mu       sync.Mutex // guards the rest
	problems []string
	loaded   chan struct{} // closed when the page is there; nil while none is awaited
}

// Open opens a blank tab.
func (b *Browser) Open(ctx context.Context, look Look) (*Tab, error) {
	var target struct{ TargetID string }
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var session struct{ SessionID string }
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return nil, err
	}
	t := &Tab{browser: b, session: session.SessionID, target: target.TargetID}
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		if err := t.do(ctx, domain+".enable", struct{}{}, nil); err != nil {
			return nil, err
		}
	}
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	err := t.do(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	if err != nil {
		return nil, err
	}
	return t, t.size(ctx, look.Width, look.Height)
}

func (t *Tab) size(ctx context.Context, width, height int) error {
	return t.do(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

func (t *Tab) do(ctx context.Context, method string, params, result any) error {
	return t.browser.call(ctx, t.session, method, params, result)
}

// Go goes to a page and waits for it and all it needs.
func (t *Tab) Go(ctx context.Context, address string) error {
	return t.load(ctx, func() error {
		var said struct{ ErrorText string }
		err := t.do(ctx, "Page.navigate", map[string]any{"url": address}, &said)
		if err == nil && said.ErrorText != "" {
			err = fmt.Errorf("%s: %s", address, said.ErrorText)
		}
		return err
	})
}

// load does something that brings another page, and waits for that.
func (t *Tab) load(ctx context.Context, act func() error) error {
	loaded := make(chan struct{})
	t.mu.Lock()
	t.loaded = loaded
	t.mu.Unlock()
	if err := act(); err != nil {
		return err
	}
	select {
	case <-loaded:
		// What the page caused is told before what is asked for after it.
		var ready string
		return t.Eval(ctx, "document.readyState", &ready)
	case <-ctx.Done():
		return fmt.Errorf("no page came: %w", ctx.Err())
	}
}

// event is what is read of events.
type event struct {
	Type  string
	Entry struct{ Level, Text, URL string }
	Args  []struct {
		Value       any
		Description string
	}
	ExceptionDetails struct {
		Text      string
		Exception struct{ Description string }
	}
	Response struct {
		URL    string
		Status int
	}
	Issue struct {
		Code    string
		Details json.RawMessage
	}
	ErrorText string
	Canceled  bool
}

// happened takes note of an event.
func (t *Tab) happened(m message) {
	var e event
	if err := json.Unmarshal(m.Params, &e); err != nil {
		e.ErrorText = "event not understood: " + err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	note := func(format string, args ...any) { t.problems = append(t.problems, fmt.Sprintf(format, args...)) }
	switch m.Method {
	case "Page.loadEventFired":
		if t.loaded != nil {
			close(t.loaded)
			t.loaded = nil
		}
	case "Log.entryAdded":
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			note("console %s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case "Runtime.consoleAPICalled":
		if slices.Contains([]string{"error", "warning", "assert"}, e.Type) {
			note("console %s: %v", e.Type, e.Args)
		}
	case "Runtime.exceptionThrown":
		note("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description)
	case "Network.responseReceived":
		if e.Response.Status >= 400 {
			note("%s answers %d", e.Response.URL, e.Response.Status)
		}
	case "Network.loadingFailed":
		if !e.Canceled {
			note("not loaded: %s", e.ErrorText)
		}
	case "Audits.issueAdded":
		note("issue %s: %s", e.Issue.Code, e.Issue.Details)
	}
}

// Problems are what went wrong in the tab since it was asked for last.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.problems
	t.problems = nil
	return out
}

// Eval evaluates JavaScript in the page, which its security policy does not
// concern.
func (t *Tab) Eval(ctx context.Context, expression string, result any) error {
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := t.do(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out); err != nil {
		return err
	}
	if e := out.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result == nil || len(out.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(out.Result.Value, result)
}

// keys are what the keys of a keyboard are called in the protocol.
var keys = map[string]map[string]any{
	"Tab":   {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
	"Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
}

// Press presses a key: Tab or Enter.
func (t *Tab) Press(ctx context.Context, key string) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind}
		for name, value := range keys[key] {
			params[name] = value
		}
		if err := t.do(ctx, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// Picture takes a picture of the whole page, as PNG, at most so many pixels high.
func (t *Tab) Picture(ctx context.Context, highest int) ([]byte, error) {
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := t.do(ctx, "Page.getLayoutMetrics", struct{}{}, &size); err != nil {
		return nil, err
	}
	clip := map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": min(size.CSSContentSize.Height, float64(highest)), "scale": 1}
	var out struct{ Data []byte }
	err := t.do(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": clip}, &out)
	return out.Data, err
}

// Close closes the tab.
func (t *Tab) Close(ctx context.Context) error {
	return t.browser.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": t.target}, nil)
}
