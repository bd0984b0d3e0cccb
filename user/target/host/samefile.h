/*
 * user/target/host/samefile.h - are two files one to the kernel's probes?
 *
 * Containers of one image run the same inode through overlay mounts of their own, each of which shows a device number, and
 * perhaps an inode number, of its own; a probe is put into the inode beneath (d_real_inode() in bpf_uprobe_multi_link_attach()
 * and create_local_trace_uprobe(), Linux 6.18). No system call tells which that is. But memory does: the pages of a file
 * are one inode's alone, and a mapping of an overlay's file has the pages of the inode beneath.
 */
#ifndef TARGET_SAMEFILE_H
#define TARGET_SAMEFILE_H

#include <stdbool.h>

/*
 * True only where it is proven: their size and times are the same, and the page of memory that has the beginning of the
 * one is that of the other. To see pages takes CAP_SYS_ADMIN. They are on disks of this machine: a page is read.
 */
bool same_file(int a, int b);
/* The second half of that. */
bool same_page(int a, int b);

#endif
