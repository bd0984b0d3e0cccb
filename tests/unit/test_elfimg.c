/* tests/unit/test_elfimg.c - programs of 32 bits and of the other byte order: headers and symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <libelf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "go/image/elf/elfimg_priv.h"

enum { MACHINE = EM_MIPS, NSYMS = 3000 };

static const char sections[] = "\0.symtab\0.strtab\0.names";
static const char names[] = "\0runtime.data\0runtime.bss\0other";

static struct {
	uint8_t at[1 << 18];
	size_t n;
} file;

/* Appends what the type is in a file of this byte order. */
static size_t put(unsigned order, Elf_Type type, void *what, size_t n)
{
	Elf_Data from = { .d_buf = what, .d_type = type, .d_size = n, .d_version = EV_CURRENT };
	Elf_Data to = { .d_buf = file.at + file.n, .d_size = n, .d_version = EV_CURRENT };
	size_t at = file.n;

	assert_true(file.n + n <= sizeof(file.at));
	assert_non_null(elf32_xlatetof(&to, &from, order));
	file.n += n;
	return at;
}

/* Two symbols that are looked for stand behind many others, the first one before its definition. */
static void symbols(unsigned order)
{
	for (size_t i = 0; i < NSYMS; i++) {
		Elf32_Sym s = { .st_name = 26, .st_shndx = 1, .st_value = (Elf32_Addr)i };

		if (i == 5)
			s = (Elf32_Sym){ .st_name = 1, .st_shndx = SHN_UNDEF, .st_value = 7 };
		if (i == NSYMS - 2)
			s = (Elf32_Sym){ .st_name = 14,
					 .st_info = ELF32_ST_INFO(STB_LOCAL, STT_OBJECT),
					 .st_shndx = 1,
					 .st_value = 0x89abcdef,
					 .st_size = 0x10203 };
		if (i == NSYMS - 1)
			s = (Elf32_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 0x1000 };
		put(order, ELF_T_SYM, &s, sizeof(s));
	}
}

static int program(unsigned order)
{
	Elf32_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32,
				       (unsigned char)order, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = MACHINE,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_shoff = sizeof(eh) + sizeof(Elf32_Phdr),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf32_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf32_Shdr),
			  .e_shnum = 4,
			  .e_shstrndx = 3 };
	uint32_t at = eh.e_shoff + 4 * sizeof(Elf32_Shdr);
	Elf32_Phdr ph = {
		.p_type = PT_LOAD, .p_offset = at, .p_vaddr = 0x4000, .p_filesz = 4, .p_memsz = 8
	};
	Elf32_Shdr sh[4] = {
		{ 0 },
		{ .sh_name = 1,
		  .sh_type = SHT_SYMTAB,
		  .sh_offset = at + sizeof(names) + sizeof(sections),
		  .sh_size = NSYMS * sizeof(Elf32_Sym),
		  .sh_link = 2 },
		{ .sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names) },
		{ .sh_name = 17,
		  .sh_type = SHT_STRTAB,
		  .sh_offset = at + sizeof(names),
		  .sh_size = sizeof(sections) }
	};
	int fd = memfd_create("program", MFD_CLOEXEC);

	file.n = 0;
	put(order, ELF_T_EHDR, &eh, sizeof(eh));
	put(order, ELF_T_PHDR, &ph, sizeof(ph));
	put(order, ELF_T_SHDR, sh, sizeof(sh));
	put(order, ELF_T_BYTE, (void *)(uintptr_t)names, sizeof(names));
	put(order, ELF_T_BYTE, (void *)(uintptr_t)sections, sizeof(sections));
	symbols(order);
	assert_int_equal(write(fd, file.at, file.n), file.n);
	return fd;
}

static void other_classes(void **state)
{
	static const char *const want[] = { "runtime.data", "runtime.bss", "runtime.none" };
	static const unsigned orders[] = { ELFDATA2LSB, ELFDATA2MSB };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		int fd CLEANUP(closep) = program(orders[i]);
		CLEANUP(elfimg_freep) struct elfimg *img = NULL;
		struct elf_sym sym[3];
		struct err e = { 0 };
		char text[5] = "";

		assert_int_equal(elfimg_open(fd, "program", 4, &img, &e), -ENOTSUP);
		assert_null(img);
		assert_int_equal(elfimg_open_any(fd, "program", 4, &img, &e), 0);
		assert_true(elfimg_narrow(img));
		assert_int_equal(elfimg_big_endian(img), orders[i] == ELFDATA2MSB);
		assert_int_equal(elfimg_machine(img), MACHINE);
		assert_int_equal(elfimg_symbols(img, want, 3, sym, &e), 2);
		assert_int_equal(sym[0].value, 0x1000);
		assert_int_equal(sym[1].value, 0x89abcdef);
		assert_int_equal(sym[1].size, 0x10203);
		assert_int_equal(sym[1].type, STT_OBJECT);
		assert_false(sym[2].found);
		assert_int_equal(mem_read(elfimg_mem(img), 0x4001, text, 4, &e), 0);
		assert_memory_equal(text, "run", 4); /* the last byte is beyond the file's */
	}
}

/* A header's table of sections that ends behind the file. */
static void cut_short(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr) + 4 * sizeof(Elf32_Shdr);
	     n++) {
		int fd CLEANUP(closep) = program(ELFDATA2MSB);
		CLEANUP(elfimg_freep) struct elfimg *img = NULL;
		struct err e = { 0 };

		assert_int_equal(ftruncate(fd, (off_t)n), 0);
		assert_true(elfimg_open_any(fd, "program", 4, &img, &e) < 0);
		assert_true(e.msg[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_classes),
		cmocka_unit_test(cut_short),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
