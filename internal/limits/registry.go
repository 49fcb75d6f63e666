package limits

// Limits of what registries and images say.
const (
	// NamedHosts bounds the hosts that a client remembers as named by one registry. Further ones may only be at public
	// addresses.
	NamedHosts = 256
	// ManifestBlobs bounds the config and layers of an image. A manifest's size allows for a few more.
	ManifestBlobs = 32768
	// IndexManifests bounds the manifests that an index lists, and those of an index of indexes together.
	IndexManifests = 1000
	// ManifestNesting bounds values in values of a manifest whose size is computed: as encoding/json, which reads it
	// when it comes.
	ManifestNesting = 10_000
	// BlobSize bounds one blob: the largest tensors have a few GiB.
	BlobSize = 1 << 40
	// CopyManifests bounds the manifests of an image and of its referrers that are copied from one registry to another.
	CopyManifests = 64 << 20
	// Tags bounds the tags of a repository that are listed, and TagPageSize the pages in which they come.
	Tags        = 500_000
	TagPageSize = 32 << 20
	// ListPages bounds the pages of a list of a registry or a hub, and IdlePages those in a row that have nothing new.
	ListPages = 1000
	IdlePages = 8
	// Referrers bounds the artifacts that are attached to a manifest.
	Referrers = 10_000
	// LayoutMembers bounds the members of an archive of an OCI layout.
	LayoutMembers = 100_000
	// LayoutIndex bounds the index.json of an OCI layout.
	LayoutIndex = 64 << 20
	// LayoutRatio bounds how many times larger than itself a compressed archive may be.
	LayoutRatio = 200
	// ConfigFile bounds the user's configuration file.
	ConfigFile = 1 << 20
)

func init() {
	const layout = "registry/layout.TestLimits"
	register(
		Limit{"NamedHosts", "other hosts that a registry leads to", NamedHosts, Count, "registry/remote.TestManyNamedHosts"},
		Limit{"ManifestBlobs", "config and layers of an image", ManifestBlobs, Count, "manifest.TestManifestLimits"},
		Limit{"IndexManifests", "manifests of an index", IndexManifests, Count, "manifest.TestManifestLimits"},
		Limit{"ManifestNesting", "values in values of a manifest whose size is computed", ManifestNesting, Levels,
			"manifest/store/collect.TestScanLinksNesting"},
		Limit{"BlobSize", "size of a blob", BlobSize, Bytes, "manifest.TestManifestLimits"},
		Limit{"CopyManifests", "manifests that a copy between registries reads", CopyManifests, Bytes,
			"registry.TestCopyManifests"},
		Limit{"Tags", "tags of a repository", Tags, Count, "registry/browse.TestTagLimits"},
		Limit{"ListPages", "pages of a list of a registry or a hub", ListPages, Count, "registry/remote.TestPages"},
		Limit{"IdlePages", "pages of a list in a row that have nothing new", IdlePages, Count, "registry/remote.TestPages"},
		Limit{"Referrers", "artifacts that are attached to a manifest", Referrers, Count,
			"registry/remote.TestEndlessReferrers"},
		Limit{"TagPageSize", "page of a list of tags", TagPageSize, Bytes, "registry/browse.TestTagLimits"},
		Limit{"LayoutMembers", "members of an archive of an OCI layout", LayoutMembers, Count, layout},
		Limit{"LayoutIndex", "index.json of an OCI layout", LayoutIndex, Bytes, layout},
		Limit{"LayoutRatio", "times that a compressed archive may grow", LayoutRatio, Count, layout},
		Limit{"ConfigFile", "size of the configuration file", ConfigFile, Bytes, "registry/settings.TestConfigFileLimits"},
	)
}
