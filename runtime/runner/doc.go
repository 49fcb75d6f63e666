// Package runner keeps a loaded model in a process of its own: both ends of it.
//
// [Start] runs a child of the same program, which calls [Serve]; what the parent gets is a [runtime.Engine]. The two
// talk in lines of JSON over the child's standard input and output, any number of requests at once, so nothing of a
// child lies on the file system and a child whose parent is gone reads the end of its input and ends. The system, or
// the child itself, sees to one that hangs in the engine. The child's standard error is read without limit, and its
// tail is kept for the message when the child dies.
//
// Contract: a child that dies, however it does, ends its own requests with an error that is an [ErrDied], and nothing else. Errors
// of the runtime keep their kind across the pipe. A request whose context ends is cancelled in the child within a step.
package runner
