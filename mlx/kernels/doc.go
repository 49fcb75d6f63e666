// Package kernels has no code, only the tests of the bridge's CPU kernels: products, attention, norms, activations,
// experts and packed rows, on every instruction set of the processor, against loops in Go.
//
// They are a package of their own so that they run without the race detector, which sees nothing of C++ and makes the
// loops ten times slower. Package mlx, whose goroutines and threads it does check, keeps its own tests.
package kernels
