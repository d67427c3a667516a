// Package queuestest builds queue configurations for tests, from an indented
// text ([Tree], [Rules]) that fits into a test table or a golden file. It also
// reads amounts as people write them ([Vector]) and shows trees as text
// ([ShowSettings], [ShowUsage]).
//
// Nothing but tests imports it.
package queuestest
