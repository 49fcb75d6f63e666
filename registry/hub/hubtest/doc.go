// Package hubtest is a fake of the Hugging Face hub and of ModelScope, for tests.
//
// It follows the documented behaviour, and the tests of package hub run the hub's own Python client against it, so that
// it stays faithful. Each of its faults is one that users meet: expired signatures, rate limits, failing and stalling
// connections, short bodies, repositories that change.
package hubtest
