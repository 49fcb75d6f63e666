// Package address says from where an address is reachable, and which hosts may direct a client to which addresses.
//
// It connects to nothing and resolves no names. [Hosts] are an operator's list of registries.
package address
