package limits

// Limits of what registries and images say.
const (
	// NamedHosts bounds the hosts that one registry leads to and that a client remembers. It holds further ones to the bound of
	// a public registry.
	NamedHosts = 256
)

func init() {
	register(
		Limit{"NamedHosts", "other hosts that a registry leads to", NamedHosts, Count, "registry.TestManyNamedHosts"},
	)
}
