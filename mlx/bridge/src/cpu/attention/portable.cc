#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_portable = {portable::kPanel, portable::kChunk, portable::tile, portable::small_batch,
                                             portable::join, portable::pack};

}  // namespace ingot::cpu
