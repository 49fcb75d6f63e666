// Package runner runs a loaded model in a child process. It implements both ends.
//
// [Start] runs a child of the same program, which calls [Serve]; the parent gets a [runtime.Engine]. The two exchange
// lines of JSON over the child's standard input and output, for any number of requests at once. A child leaves nothing
// in the file system. When its parent ends, the child reads the end of its input and ends too; a child that hangs in
// the engine is killed by the system, or kills itself. The parent reads the child's standard error without limit and
// keeps its tail for the error message when the child dies. A child shows signs of life, which do not wait for the
// engine. If it shows none for 20 s, such as one that was stopped, the parent kills it, since its requests wait for it;
// for 8 s if it leads a group of ranks, which wait for it too.
//
// Contract: a child that dies ends only its own requests, with an error that is an [ErrDied]. Errors of package runtime
// keep their kind across the pipe. When the context of a request ends, the child cancels the request within a step.
package runner
