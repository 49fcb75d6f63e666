package fault

import "errors"

// first returns the first kind that an error matches and that answers, or the zero Kind.
func first(err error, has func(*Kind) bool) Kind {
	for i := range kinds {
		if k := &kinds[i]; has(k) && errors.Is(err, k.Err) {
			return *k
		}
	}
	return Kind{}
}

// Exit returns the exit code of a command that fails with an error.
func Exit(err error) int {
	if k := first(err, func(k *Kind) bool { return k.Exit != 0 }); k.Exit != 0 {
		return k.Exit
	}
	return ExitFailed
}

// suffix returns a text as the end of a message.
func suffix(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// Remedy returns what a user of the command line can do about an error, as the end of its message, which may be empty.
func Remedy(err error) string {
	return suffix(first(err, func(k *Kind) bool { return k.Remedy != "" }).Remedy)
}

// Status returns the HTTP status of a request that fails with an error, or 0 if the table does not say, and what the
// client's user can do, as the end of the message, which may be empty.
func Status(err error) (status int, advice string) {
	k := first(err, func(k *Kind) bool { return k.Status != 0 })
	return k.Status, suffix(k.Advice)
}

// Transfer is Status for an error that ended a pull or a push. It is 0 for errors that mean the same in all requests.
func Transfer(err error) (status int, advice string) {
	k := first(err, func(k *Kind) bool { return k.Transfer != 0 })
	return k.Transfer, suffix(k.Advice)
}

// CodeOf returns an error's code in OpenAI's API, or "".
func CodeOf(err error) Code {
	return first(err, func(k *Kind) bool { return k.Code != "" }).Code
}

// WireName returns an error's name on the wire, or "".
func WireName(err error) string {
	return first(err, func(k *Kind) bool { return k.Wire != "" }).Wire
}

// OfWire returns the error with a name on the wire, or nil.
func OfWire(name string) error {
	for _, k := range kinds {
		if name != "" && k.Wire == name {
			return k.Err
		}
	}
	return nil
}
