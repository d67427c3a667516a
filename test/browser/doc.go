// Package browser tests the pages in a browser: chromedp drives Debian's Chromium without
// a window. A tab reports every error on its console, every failed answer, and everything
// that a content security policy blocked.
package browser
