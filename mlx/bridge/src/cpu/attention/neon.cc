#define INGOT_ISA neon
#include "cpu/attention/index.h"
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_neon = {
    .panel = neon::kPanel,
    .chunk = neon::kChunk,
    .tile = neon::tile,
    .small_batch = neon::small_batch,
    .join = neon::join,
    .index_panel = neon::kIndexPanel,
    .index = neon::index_panels,
    .pack = neon::pack,
};

}  // namespace ingot::cpu
