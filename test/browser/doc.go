// Package browser looks at the pages as a browser does: it drives Debian's
// Chromium without a window, and is told by it of every error on its console, every
// answer that is not good, and everything that a content security policy stopped.
//
// Chromium is spoken to in its DevTools protocol over two pipes: JSON messages that
// end with a zero byte. chromium.go starts it, tab.go opens pages.
package browser
