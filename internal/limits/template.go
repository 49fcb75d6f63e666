package limits

// Limits of a chat template: its text, checked before anything reads it, and one render of it. Published templates
// have at most 20 KB, 20 levels and 10 macros, and take less than 4 MiB beyond their variables.
const (
	// TemplateText bounds the text of a template of either language.
	TemplateText = 256 << 10
	// TemplateFile bounds a file of an image that holds templates: a tokenizer's configuration holds more than those.
	TemplateFile = 32 << 20
	// TemplateNesting bounds blocks within blocks, and in Go templates parentheses too.
	TemplateNesting = 200
	// TemplateDepth bounds the levels of the tree that a template compiles to: blocks, and operators within operators.
	TemplateDepth = 1000
	// TemplateDefinitions bounds the named parts of a template: define and block; macro, call and generation.
	TemplateDefinitions = 500
	// TemplateVariables bounds the variables that a Go template declares: text/template looks for one among all.
	TemplateVariables = 100
	// TemplateArguments bounds the arguments of one macro or call.
	TemplateArguments = 255
	// TemplateJSONNesting bounds values in values of a template's variables and of JSON that it decodes. Python's limit
	// is near 1000.
	TemplateJSONNesting = 900
	// TemplateCompile bounds the work of compiling a Jinja template.
	TemplateCompile = 2_000_000
	// TemplateSteps bounds what one render evaluates. A step takes a tenth of a microsecond or more. TemplateStepsLeast
	// and TemplateStepsPerByte bound it by its variables, so that a small request cannot have much evaluated.
	TemplateSteps        = 50_000_000
	TemplateStepsLeast   = 2_000_000
	TemplateStepsPerByte = 64
	// RenderTime bounds the time of one render, without the waits for other requests, in seconds. It is a second line: the
	// steps end what computes on an idle machine long before.
	RenderTime = 30
	// TemplateProbeSteps bounds what the render of one small conversation evaluates, of the about 60 that find out what a
	// template accepts.
	TemplateProbeSteps = 500_000
	// TemplateCalls bounds calls within calls while a template renders.
	TemplateCalls = 500
	// TemplateLevels bounds the levels of all those calls together, and so the stack.
	TemplateLevels = 20_000
	// TemplateMemory and TemplateMemoryTimes bound what one render makes: bytes, plus a multiple of the size of its
	// variables.
	TemplateMemory      = 16 << 20
	TemplateMemoryTimes = 8
	// TemplateOutput and TemplateOutputTimes bound the text that one render gives, likewise.
	TemplateOutput      = 8 << 20
	TemplateOutputTimes = 4
)

func init() {
	const compile, render = "chat.TestTemplateTextLimits", "chat.TestTemplateRenderLimits"
	register(
		Limit{"TemplateText", "text of a chat template", TemplateText, Bytes, compile},
		Limit{"TemplateFile", "file of an image that holds chat templates", TemplateFile, Bytes,
			"prompt.TestLargeTemplateFile"},
		Limit{"TemplateNesting", "blocks within blocks of a template", TemplateNesting, Levels, compile},
		Limit{"TemplateDepth", "tree of a compiled template", TemplateDepth, Levels, compile},
		Limit{"TemplateDefinitions", "named parts (macro, call, block, define) of a template", TemplateDefinitions, Count,
			compile},
		Limit{"TemplateVariables", "variables that a Go template declares", TemplateVariables, Count, compile},
		Limit{"TemplateArguments", "arguments of one macro or call", TemplateArguments, Count, compile},
		Limit{"TemplateJSONNesting", "values in values of a template's variables", TemplateJSONNesting, Levels,
			"chat/jinja/value.TestDecodeJSONNesting"},
		Limit{"TemplateCompile", "work of compiling a Jinja template", TemplateCompile, Steps, compile},
		Limit{"TemplateSteps", "work of one render", TemplateSteps, Steps, render},
		Limit{"TemplateStepsLeast", "work of one render that has few variables", TemplateStepsLeast, Steps, render},
		Limit{"TemplateStepsPerByte", "more such work for each byte of the variables", TemplateStepsPerByte, Steps, render},
		Limit{"RenderTime", "time of one render, without its waits", RenderTime, Seconds, render},
		Limit{"TemplateProbeSteps", "work of one of the small renders that find out what a template accepts",
			TemplateProbeSteps, Steps, render},
		Limit{"TemplateCalls", "calls within calls of one render", TemplateCalls, Levels, render},
		Limit{"TemplateLevels", "levels of all those calls together", TemplateLevels, Levels, render},
		Limit{"TemplateMemory", "memory that one render takes beyond its variables' share", TemplateMemory, Bytes, render},
		Limit{"TemplateMemoryTimes", "that share: memory per byte of variables", TemplateMemoryTimes, Bytes, render},
		Limit{"TemplateOutput", "text that one render gives beyond its variables' share", TemplateOutput, Bytes, render},
		Limit{"TemplateOutputTimes", "that share: text per byte of variables", TemplateOutputTimes, Bytes, render},
	)
}
