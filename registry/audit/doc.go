// Package audit checks that a registry has everything that an image refers to, and sends what it lacks again.
//
// Contract:
//
//   - The registry itself is asked, never a mirror.
//   - A problem of one blob or manifest is reported, and the check goes on. It ends early only if the image cannot be
//     found, or when its context ends.
//   - A repair sends what the store has, and asks the registry again. Only what it then has is repaired.
package audit
