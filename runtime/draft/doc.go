// Package draft proposes tokens that the target verifies: with a draft model, by n-gram lookup in the request's own
// text, or with a function. It also chooses how many to propose, from measurements.
//
// A [Drafter] belongs to a model and a [Text] to a request; both are used on the engine's thread. [Depths] does not use
// the engine. Drafts change the speed of a response, never its contents.
package draft
