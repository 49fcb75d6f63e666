package limits

// Limits of the archives that images of other programs hold.
const (
	// ArchiveMembers bounds the members of an archive, and ArchiveNames the bytes of the paths of an image's files. The
	// largest published checkpoints have some thousand files, but a dataset beside one may have many.
	ArchiveMembers = 250_000
	ArchiveNames   = 32 << 20
	// ArchiveDepth bounds folders in folders.
	ArchiveDepth = 32
	// ArchiveUnpacked bounds what a compressed archive unpacks to, or ArchiveRatio times its size, if that is more.
	// Weights shrink by a third at most, and text to a tenth.
	ArchiveUnpacked = 256 << 20
	ArchiveRatio    = 32
	// ArchiveWindow bounds the memory for unpacking zstd. Its strongest levels use 128 MiB.
	ArchiveWindow = 128 << 20
)

func init() {
	const test, many = "manifest/unpack.TestBombs", "manifest/unpack.TestManyMembers"
	register(
		Limit{"ArchiveMembers", "members of an archive in an image", ArchiveMembers, Count, many},
		Limit{"ArchiveNames", "paths of the files of an image that are unpacked", ArchiveNames, Bytes, many},
		Limit{"ArchiveDepth", "folders in folders of an image", ArchiveDepth, Levels, "manifest/unpack.TestHostile"},
		Limit{"ArchiveUnpacked", "a compressed archive that is unpacked, if that is more than ArchiveRatio", ArchiveUnpacked,
			Bytes, test},
		Limit{"ArchiveRatio", "times its size that a compressed archive is unpacked to", ArchiveRatio, Count, test},
		Limit{"ArchiveWindow", "memory for unpacking zstd", ArchiveWindow, Bytes, test},
	)
}
