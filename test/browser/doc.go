// Package browser looks at the pages as a browser does: chromedp drives Debian's
// Chromium without a window. A tab tells of every error on its console, every answer
// that is not good, and everything that a content security policy stopped.
package browser
