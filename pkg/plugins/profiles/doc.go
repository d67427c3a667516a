// Package profiles says whether the profiles of a scheduler are such that queues and
// holds mean what they say. The command asks before it schedules, and so does the
// simulation, which has profiles of its own.
package profiles
