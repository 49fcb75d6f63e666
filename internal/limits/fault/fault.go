// Package fault is the one table of the errors that a program, a client or a parent process can tell apart: by exit
// code, by HTTP status, or by a name on the wire to a model's process.
//
// Contract:
//   - An error is declared with [Register], beside its package's other errors; that is all it takes. Errors of the
//     standard library are in foreign.go.
//   - Exit codes, statuses, codes, names and remedies are asked for here: see [Exit], [Status], [Transfer], [CodeOf],
//     [WireName] and [Remedy]. Each is answered by the first kind, by rank, that the error matches and that answers.
//   - Register is called while packages are initialized; after that the table does not change, and may be read
//     concurrently.
//   - docs/errors.md prints the table; `go test ./internal/limits/fault -update` rewrites it there.
//   - The package imports nothing of the project.
package fault

import (
	"cmp"
	"slices"
)

// Kind is an error that its consumers distinguish.
type Kind struct {
	Err   error
	Name  string // of the variable: folder.ErrName
	Means string // what has happened, for docs/errors.md
	Rank  Rank   // unique

	Exit int // the exit code of a command; 0: ExitFailed

	Status   int  // the HTTP status of a request; 0: not said, which is Internal if no other kind says it
	Transfer int  // the HTTP status if the error ended a pull or a push; 0: not said, which is as Status
	Code     Code // what clients of OpenAI's API recognize; may be empty

	Wire string // its name between a model's process and its parent; without one it arrives as a text

	Remedy string // what a user of the command line can do; may be empty
	Advice string // what a user of the server can do, if its error has this Status or Transfer; may be empty
}

// HTTP statuses.
const (
	Invalid     = 400 // the request is at fault
	Forbidden   = 403
	NotFound    = 404
	TooMany     = 429 // of a key
	Internal    = 500
	Gateway     = 502 // another server is at fault
	Unavailable = 503 // a later request may succeed
	Timeout     = 504
	Full        = 507 // the disk is full
)

// Exit codes.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// Code is an error code of OpenAI's API.
type Code string

// Error codes.
const (
	CodeModel   Code = "model_not_found"
	CodeContext Code = "context_length_exceeded"
	CodeRate    Code = "rate_limit_exceeded"
)

// Rank orders the kinds: of those that an error matches, the lowest counts. A rank is a group and a number in it.
type Rank int

// Groups of kinds. Exhausted resources come before the part of the request that needed them, parts of a request before
// the whole request, and the ends of a context last, because a failure often cancels what runs beside it. What is wrong
// before a model is involved comes before all of these.
const (
	Usage    Rank = 100 * iota // of the command line
	Store                      // the model store and its disk
	Server                     // the server that a command uses
	Registry                   // a registry, and the way to it
	Content                    // what a registry sent
	Import                     // a model that is created
	Stopping                   // the server stops
	Resource                   // memory, and places in a queue
	Part                       // a part of a request
	Request                    // the request, or the model's image, as a whole
	Process                    // the model's process
	Context                    // the end of a context
)

var kinds []Kind // by rank

// Register adds an error to the table and returns it.
func Register(err error, k Kind) error {
	k.Err = err
	i, _ := slices.BinarySearchFunc(kinds, k, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name))
	})
	kinds = slices.Insert(kinds, i, k)
	return err
}

// Kinds returns the table, by rank.
func Kinds() []Kind { return slices.Clone(kinds) }
