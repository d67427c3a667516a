// Package web is the pages for people, at / of the REST interface: queues with their
// quotas, waiting pods and why they wait, nodes with their holders, what was decided, the
// configuration and what was wrong with the last one, the health.
//
// The server makes whole pages: they have no script and load nothing from elsewhere, and a
// text browser shows everything. A page has the content of one view of the inventory. Long
// lists have filters and are split into pages, so that 5,000 queues cost as much as 50.
//
// Everything on a page is untrusted: names, labels, messages of errors. html/template
// escapes it for its context, the content security policy of server.go forbids scripts in
// any case, and [visible] makes characters visible that would hide or reverse others.
package web
