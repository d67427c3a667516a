// Package web is the pages for people, at / of the REST interface: queues with their
// quotas, waiting pods and why they wait, nodes with their holders, what was decided, the
// configuration and what was wrong with the last one, the health.
//
// The pages are made here, whole: there is no script, and nothing comes from
// elsewhere. A browser that shows text only shows everything. What a page says is
// of one view of the inventory, and no page lists more than fits on one: there are
// filters, and pages of lists, so that 5,000 queues cost no more than 50.
//
// Everything that is shown is untrusted: names, labels, messages of errors. html/template
// escapes it for its context, the content security policy of server.go lets a browser run
// nothing even so, and [visible] shows characters that would hide or reverse others.
package web
