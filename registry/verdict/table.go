package verdict

var rows = []Row{
	// Steps that may be left out come before what every step has in common: their failure decides nothing.
	{Mount, 408, 408, Retry, "busy"},
	{Mount, 425, 425, Retry, "busy"},
	{Mount, 429, 429, Retry, "busy"},
	{Mount, 200, 599, FallBack, "a mount only saves an upload"},

	{HeadManifest, 404, 404, Absent, ""},
	{HeadManifest, 400, 407, FallBack, "a role that may push but not read; a registry without HEAD"},
	{HeadManifest, 410, 422, FallBack, "a registry or proxy without HEAD"},
	{HeadManifest, 501, 501, FallBack, "a registry without HEAD"},
	{HeadBlob, 404, 404, Absent, ""},
	{HeadBlob, 400, 407, FallBack, "a role that may push but not read; a registry without HEAD"},
	{HeadBlob, 410, 422, FallBack, "a registry or proxy without HEAD"},
	{HeadBlob, 501, 501, FallBack, "a registry without HEAD"},

	{Referrers, 400, 400, FallBack, "no referrers API"},
	{Referrers, 403, 406, FallBack, "no referrers API, or a proxy that does not know its path"},
	{Referrers, 410, 422, FallBack, "no referrers API"},
	{Referrers, 501, 501, FallBack, "no referrers API"},

	{FirstChunk, 413, 413, Smaller, "a limit of the registry or of a proxy"},
	{FirstChunk, 200, 201, FallBack, "the chunk ended the upload: a registry without chunks"},
	{FirstChunk, 400, 400, FallBack, "a registry without chunks"},
	{FirstChunk, 403, 405, FallBack, "a registry without chunks"},
	{FirstChunk, 409, 412, FallBack, "a registry without chunks"},
	{FirstChunk, 415, 422, FallBack, "a registry without chunks"},
	{FirstChunk, 501, 501, FallBack, "a registry without chunks"},

	{NextChunk, 413, 413, Smaller, "a limit of the registry or of a proxy"},
	{NextChunk, 400, 400, Ask, "the offset may be wrong"},
	{NextChunk, 409, 409, Ask, "the offset may be wrong"},
	{NextChunk, 416, 416, Ask, "the chunk does not begin at the registry's offset"},
	{NextChunk, 404, 404, Restart, "the session is lost"},
	{NextChunk, 410, 410, Restart, "the session is lost"},
	{NextChunk, 405, 405, FallBack, "chunks are refused from now on"},
	{NextChunk, 501, 501, FallBack, "chunks are refused from now on"},

	{AskUpload, 400, 400, Restart, "the session is lost"},
	{AskUpload, 403, 407, Restart, "a registry that does not report offsets"},
	{AskUpload, 409, 422, Restart, "the session is lost"},
	{AskUpload, 501, 501, Restart, "a registry that does not report offsets"},

	{PutBlob, 200, 200, Look, "not what a registry answers, but the blob may be there"},
	{PutBlob, 413, 413, Smaller, "a limit of the registry or of a proxy"},
	{PutBlob, 400, 400, Look, "another push of the blob may have been faster"},
	{PutBlob, 404, 404, Look, "the session is lost, perhaps because the blob is complete"},
	{PutBlob, 409, 412, Look, "another push of the blob may have been faster"},
	{PutBlob, 416, 416, Ask, "the body does not begin at the registry's offset"},
	{PutBlob, 422, 422, Look, "another push of the blob may have been faster"},

	{PutManifest, 409, 409, Look, "another push may have been faster; an immutable tag may name the same manifest"},

	{GetManifest, 404, 404, Absent, ""},
	{GetBlob, 404, 404, Absent, ""},
	{ListTags, 404, 404, Absent, ""},
	{Delete, 400, 400, FallBack, "no deletion by tag, or none at all"},
	{Delete, 405, 406, FallBack, "no deletion by tag, or none at all"},
	{Delete, 415, 415, FallBack, "no deletion by tag, or none at all"},
	{Delete, 501, 501, FallBack, "no deletion by tag, or none at all"},
	{Delete, 404, 404, Absent, ""},
	{Delete, 410, 410, Absent, ""},

	{HubList, 400, 400, FallBack, "a hub without /tree/"},
	{HubList, 404, 405, FallBack, "a hub without /tree/, or no such repository"},
	{HubList, 410, 410, FallBack, "a hub without /tree/"},
	{HubList, 501, 501, FallBack, "a hub without /tree/"},
	{HubFile, 404, 404, Absent, ""},
	{SignedFile, 400, 401, FallBack, "the signature has expired: resolve again"},
	{SignedFile, 403, 404, FallBack, "the signature has expired: resolve again"},
	{SignedFile, 410, 410, FallBack, "the signature has expired: resolve again"},

	{Token, 400, 400, Authorize, "OAuth 2.0 refuses an expired identity token so"},
	{Token, 404, 405, FallBack, "no OAuth 2.0: a token is asked for with GET"},

	// Every step.
	{"", 401, 401, Authorize, "credentials are missing, wrong or expired"},
	{"", 403, 403, Authorize, "the credentials do not suffice"},
	{"", 408, 408, Retry, "the server did not wait for the request"},
	{"", 421, 421, Retry, "the connection leads to another server"},
	{"", 425, 425, Retry, "the server asks for it"},
	{"", 429, 429, Retry, "requests are limited"},
	{"", 499, 499, Retry, "a proxy lost its client"},
	{"", 500, 500, Retry, "the server failed"},
	{"", 502, 504, Retry, "a proxy reached no server"},
	{"", 506, 510, Retry, "the server failed: 507 is a full disk, 509 a limit"},
	{"", 512, 599, Retry, "a proxy reached no server: 520 to 530 are Cloudflare's"},
	// 501, 505 and 511 (a network that wants a login) do not change by themselves.
}
