/*
 * user/go/image/tables/funcid.h - the runtime's function ids, which are renumbered every few versions.
 *
 * Source: funcID in runtime/symtab.go (Go 1.16 to 1.20), internal/abi/symtab.go (1.21 to 1.27).
 */
#ifndef GO_IMAGE_TABLES_FUNCID_H
#define GO_IMAGE_TABLES_FUNCID_H

#include <stdint.h>

#include "go/image/gobin.h"

/*
 * @minor: 22 for Go 1.22; at least 16. A version newer than the newest known one is treated as
 * that one.
 */
enum func_id funcid_of(int minor, uint8_t raw);

#endif
