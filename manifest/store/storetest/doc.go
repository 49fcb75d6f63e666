// Package storetest has what the tests of the store's packages share: stores with models, checks of a whole store, and
// child processes that work on one.
//
// A package whose tests start children calls [Main] from its TestMain. Only tests import this package.
package storetest
